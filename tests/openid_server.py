"""A small OpenID provider on loopback: real keys, real codes; it lies when a test tells it to."""

import base64
import hashlib
import json
import secrets
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwk, jws

CLIENT = ("humanjudge", "a secret of both")
KEY = jwk.RSAKey.generate_key(2048, {"kid": "one"})
ADA = {"sub": "248289761001", "email": "ada@example.org", "email_verified": True}


class OpenIDServer:
    """Logs in `who` at once. `lies` replace claims of the token; `signs` makes it of them."""

    def __init__(self):
        self.key = KEY
        self.who, self.lies, self.document_lies = dict(ADA), {}, {}
        self.signs = self.signed
        self.refuses, self.knows_secret = "", True
        # What goes back to the browser beside code and state.
        self.adds = {}
        self.codes, self.asked = {}, []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()

    def signed(self, claims, header=None, key=None):
        header = {"alg": "RS256", "kid": "one"} | (header or {})
        text = json.dumps(claims).encode()
        return jws.serialize_compact(header, text, key or self.key, algorithms=[header["alg"]])

    def document(self):
        places = {
            f"{name}_endpoint": f"{self.issuer}/{name}" for name in ("authorization", "token")
        }
        keys = {"jwks_uri": f"{self.issuer}/keys", "issuer": self.issuer}
        signs = {"id_token_signing_alg_values_supported": ["RS256", "HS256", "none"]}
        return places | keys | signs | self.document_lies

    def authorize(self, query):
        """Send the browser back with a code, or with why there is none."""
        self.asked.append(query)
        assert query["response_type"] == "code"
        assert query["client_id"] == CLIENT[0]
        assert query["code_challenge_method"] == "S256"
        if self.refuses:
            sent = {"error": self.refuses, "error_description": "<b>no</b>"}
        else:
            sent = {"code": secrets.token_urlsafe(8)}
            self.codes[sent["code"]] = query
        return f"{query['redirect_uri']}?{urlencode(sent | {'state': query['state']} | self.adds)}"

    def token(self, form, authorization):
        """Exchange a code, once, for who showed the verifier and the secret."""
        query = self.codes.pop(form["code"], None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        secret = base64.b64encode(":".join(CLIENT).encode()).decode()
        if query is None or challenge != query["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        is_right = authorization == f"Basic {secret}" if self.knows_secret else not authorization
        if not is_right or form["redirect_uri"] != query["redirect_uri"]:
            return 401, {"error": "invalid_client"}
        now = int(time.time())
        times = {"iat": now, "exp": now + 300}
        claims = {"iss": self.issuer, "aud": CLIENT[0], "nonce": query["nonce"]} | times | self.who
        claims = {name: v for name, v in (claims | self.lies).items() if v is not None}
        token = {"access_token": "an access token", "token_type": "Bearer"}
        return 200, token | {"id_token": self.signs(claims)}

    def _handler(self):
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                address = urlsplit(self.path)
                if address.path == "/authorization":
                    self.send_response(302)
                    self.send_header("Location", provider.authorize(dict(parse_qsl(address.query))))
                    self.end_headers()
                elif address.path == "/keys":
                    self._json(200, {"keys": [provider.key.as_dict(private=False)]})
                else:
                    self._json(200, provider.document())

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                form = dict(parse_qsl(body))
                self._json(*provider.token(form, self.headers.get("Authorization")))

            def _json(self, status, value):
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        return Handler
