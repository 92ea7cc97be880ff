"""Claims where nobody needs a key: a server of its own, since one process runs one at a time."""

import grpc

from docferry.v1 import analysis_service_pb2 as pb
from docferry.v1 import claim_service_pb2 as claim_pb
from tests.cloud.service.running import running_server
from tests.cloud.service.test_claims import Phone, link_to

CODE = grpc.StatusCode


async def test_where_everyone_is_local_a_claim_is_still_for_one_document_alone(tmp_path, make_envelope):
    async with running_server(tmp_path, tokens=(), http_port=0) as server:
        nobody = server.caller()
        nobody.token = ""
        ids = [(await nobody.submit(make_envelope())).analysis_id for _ in range(2)]
        link = await link_to(server, nobody, ids[0])
        assert link.link == f"{server.server.http_address}/c/{link.token}"
        opened = await Phone(server.channel, link.token)("Claim.Open", claim_pb.ClaimServiceOpenRequest())
        holder = Phone(server.channel, opened.session)
        await holder("Analysis.Get", pb.AnalysisServiceGetRequest(analysis_id=ids[0]))
        other = pb.AnalysisServiceGetRequest(analysis_id=ids[1])
        assert await holder.refused("Analysis.Get", other) is CODE.NOT_FOUND
        assert (
            await Phone(server.channel, "").refused("Claim.Open", claim_pb.ClaimServiceOpenRequest()) is CODE.NOT_FOUND
        )
        await Phone(server.channel, "")("Claim.Revoke", claim_pb.ClaimServiceRevokeRequest(analysis_id=ids[0]))
        mine = pb.AnalysisServiceGetRequest(analysis_id=ids[0])
        assert await holder.refused("Analysis.Get", mine) is CODE.UNAUTHENTICATED
