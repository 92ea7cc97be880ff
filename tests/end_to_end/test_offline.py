"""With the cloud down the edge answers by itself, says so, queues, and delivers when the cloud is back."""


def test_the_edge_answers_alone_and_delivers_later(system, photos) -> None:
    system.start("edge")
    system.put(photos["thermal_receipt"])
    system.put(photos["invoice_table"])
    system.until(lambda: len(system.said("edge", "read")) == 2)
    own = {tree["file"]: tree for tree in system.said("edge", "read")}
    receipt = own["thermal_receipt.jpg"]
    assert (receipt["engine"], receipt["version"]) == ("edge", 1)
    assert {"total", "date"} <= {field["name"] for field in receipt["fields"]}
    assert receipt["route"]["reasons"]
    assert system.outbox("SELECT state, count(*) FROM documents GROUP BY state") == [("packed", 2)]
    system.start("cloud")
    system.until(lambda: len(system.said("edge", "done")) == 2)
    for tree in system.said("edge", "done"):
        assert tree["engine"] == "pipeline"
        assert tree["document_id"] == own[tree["file"]]["document_id"]
        assert [version["engine"] for version in tree["versions"]] == ["edge", "pipeline"]
        assert 0 < tree["traffic"]["sent_bytes"] == sum(part["bytes"] for part in tree["traffic"]["parts"])
