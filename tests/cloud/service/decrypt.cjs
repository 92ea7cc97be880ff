// Decrypts a Web Push body by npm's http_ece, which shares no code with what encrypted it.
// stdin: {"body", "auth", "private", "public"} as base64url; stdout: the message.
const crypto = require('crypto');
const ece = require('../../../proto/node_modules/http_ece');

const given = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const privateKey = crypto.createECDH('prime256v1');
privateKey.setPrivateKey(Buffer.from(given.private, 'base64url'));
const options = { version: 'aes128gcm', privateKey, authSecret: given.auth };
process.stdout.write(ece.decrypt(Buffer.from(given.body, 'base64url'), options));
