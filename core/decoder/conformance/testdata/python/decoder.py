"""A decoder of the invented format "reference", written against PROTOCOL.md.

It needs Debian's python3-grpcio and python3-protobuf, and decoder_pb2 of core/sdk/python, of
which it uses nothing else.
"""
import calendar, hashlib, json, os, re, sys, tempfile, threading, time
from concurrent import futures

import grpc
import decoder_pb2 as pb

COOKIE = ("EARSHOT_DECODER", "a77f6c1e5f0b4b3d9c1f")
LIMIT = 256 << 20
INFO = pb.DescribeResponse(
    name="reference", version="1.0.0", revision=1, summary="Decodes an invented format.", reload=True, snapshots=True,
    transports=[pb.FRAME_KIND_LINE, pb.FRAME_KIND_EVENT, pb.FRAME_KIND_TEXT])


class Reference:
    """Decodes one stream: frames in, messages and problems out (D1 to D12)."""

    def __init__(self, opened):
        state = json.loads(opened.snapshot) if opened.snapshot else {}
        self.chat = state.get("chat", opened.origin)
        self.run = state.get("run", "")
        self.answers = state.get("answers", [])  # open: [chat, run, id, text]

    def snapshot(self):
        return json.dumps({"chat": self.chat, "run": self.run, "answers": self.answers}).encode()

    def decode(self, at, frame, offset, data, out):
        if frame.kind == pb.FRAME_KIND_CLOSE:
            return
        try:
            v = json.loads(data.decode(), parse_constant=lambda c: 1 / 0)
        except (ValueError, ArithmeticError, RecursionError) as e:
            reason = "invalid_utf8" if isinstance(e, UnicodeDecodeError) else "invalid_json"
            out.problems.add(frame=at, reason=reason, detail=str(e))
            return
        if not isinstance(v, dict):
            out.problems.add(frame=at, reason="wrong_type", detail="a frame is an object")
            return
        self.chat = text(v, "chat") or self.chat
        kind, key = text(v, "type"), text(v, "id")
        first = len(out.messages)
        if kind in ("user", "delta", "end", "answer", "call", "result") and not (key and (text(v, "tool") or kind != "call")):
            out.problems.add(frame=at, reason="wrong_type", detail="a %s without its id or tool" % kind)
            return

        def add(key, kind, **fields):
            ns, precision = when(v.get("at"))
            m = out.messages.add(frame=at, key=key, session=self.chat, run=self.run, kind=kind, time=ns, precision=precision,
                                 complete=pb.COMPLETENESS_COMPLETE, **fields)
            return m

        if kind == "user":
            self.run = key
            add(key, pb.KIND_USER, role=pb.ROLE_USER, content=text(v, "text"), signal=pb.SIGNAL_RUN_START)
        elif kind == "delta":
            found = [a for a in self.answers if a[0] == self.chat and a[2] == key]
            if not found:
                self.answers.append([self.chat, self.run, key, ""])
            (found or self.answers[-1:])[0][3] += text(v, "text")
        elif kind in ("end", "answer"):
            pieces = [a[3] for a in self.answers if a[0] == self.chat and a[2] == key]
            if kind == "end":
                self.answers = [a for a in self.answers if a[0] != self.chat or a[2] != key]
            content = text(v, "text") if kind == "answer" else "".join(pieces)
            add(key, pb.KIND_ASSISTANT, role=pb.ROLE_ASSISTANT, content=content, response_id=key)
            add("usage:" + key, pb.KIND_USAGE, response_id=key, hidden=True,
                usage=pb.Tokens(input=count(v, "in"), output=count(v, "out"), provenance=pb.PROVENANCE_PROVIDER))
        elif kind == "call":
            args = json.dumps(v["args"], ensure_ascii=False, separators=(",", ":")) if "args" in v else ""
            add("call:" + key, pb.KIND_TOOL_CALL, tool_call_id=key, tool_name=text(v, "tool"), tool_arguments=args)
        elif kind == "result":
            add("result:" + key, pb.KIND_TOOL_RESULT, tool_call_id=key, content=text(v, "text"), is_error=v.get("error") is True)
        else:  # D7: the raw frame, named as a range of the batch's data
            out.messages.add(frame=at, key="unknown:" + hash_key(data), session=self.chat, kind=pb.KIND_UNKNOWN, hidden=True,
                             complete=pb.COMPLETENESS_COMPLETE, content_at=pb.Range(offset=offset, length=len(data)),
                             attrs=[pb.Attr(key="type", value=kind or "?")])
            return
        self.keep(at, v, out, first)

    def keep(self, at, v, out, first):
        """D7: unread fields of a known frame, if one has a text, are kept as an attribute of its first message, or as a message."""
        known = {"type": str, "chat": str, "id": str, "tool": str, "text": str, "at": (str, int), "args": object, "error": bool, "in": int, "out": int}
        rest = {"/" + k: x for k, x in v.items() if not isinstance(x, known.get(k, ())) or k == "at" and not when(x)[0]}
        if not any(len(s) >= 16 for s in texts(rest)):
            return
        raw = json.dumps(rest, ensure_ascii=True)
        if len(out.messages) > first and len(raw) <= 2048:
            out.messages[first].attrs.add(key="unknown_fields", value=raw)
            return
        out.messages.add(frame=at, key="unknown_fields:" + hash_key((self.chat + raw).encode()), session=self.chat, run=self.run, kind=pb.KIND_UNKNOWN,
                         hidden=True, complete=pb.COMPLETENESS_COMPLETE, content=raw, attrs=[pb.Attr(key="type", value="unknown_fields")])

    def flush(self, at, out):
        for chat, run, key, content in self.answers:
            out.messages.add(frame=at, key=key, session=chat, run=run, kind=pb.KIND_ASSISTANT, role=pb.ROLE_ASSISTANT,
                             content=content, response_id=key)


def texts(v):
    if isinstance(v, str):
        yield v
    for x in v.values() if isinstance(v, dict) else v if isinstance(v, list) else ():
        yield from texts(x)


def text(v, name):
    s = v.get(name)
    # Half a surrogate pair is no text: protobuf would refuse the whole response.
    return s.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(s, str) else ""


def count(v, name):
    n = v.get(name)
    return n if type(n) is int and 0 <= n < 2**63 else 0


def when(at):
    """Unix nanoseconds, and their precision."""
    if type(at) is int and 10**9 <= at < 10**10:
        return at * 10**9, pb.PRECISION_SECONDS
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z", at) if isinstance(at, str) else None
    if not found:
        return 0, pb.PRECISION_INFERRED
    digits = found[2] or ""
    ns = calendar.timegm(time.strptime(found[1], "%Y-%m-%dT%H:%M:%S")) * 10**9 + int(digits.ljust(9, "0"))
    return ns, (len(digits) + 2) // 3 + pb.PRECISION_SECONDS


def hash_key(data):
    n, size = len(data), b""
    while n > 127:
        size, n = size + bytes([n & 127 | 128]), n >> 7
    return hashlib.sha256(size + bytes([n]) + data).hexdigest()[:32]


def answer(streams, batch, out):
    """Answers one batch; an exception outside of a frame is the stream's failure."""
    out.stream = batch.stream
    if batch.HasField("open"):
        if batch.open.options:
            out.failure.MergeFrom(pb.Failure(error="options: there are none", permanent=True, frame=-1))
            return
        streams[batch.stream] = Reference(batch.open)
    d, at = streams[batch.stream], 0
    for i, f in enumerate(batch.frames):
        at += f.skip
        d.decode(i, f, at, batch.data[at:at + f.length], out)
        at += f.length
    if batch.flush:
        d.flush(len(batch.frames) - 1, out)
    if batch.snapshot:
        out.snapshot = d.snapshot()
    if batch.close:
        del streams[batch.stream]


def decode(requests, _):
    streams = {}
    for request in requests:
        response = pb.DecodeResponse()
        for batch in request.batches:
            answer(streams, batch, response.results.add())
        yield response


def main():
    if os.environ.get(COOKIE[0]) != COOKIE[1]:
        sys.exit("This is an Earshot decoder; earshot starts it.")
    if os.environ.get("PLUGIN_CLIENT_CERT"):
        sys.exit("This decoder does not speak TLS: switch auto_mtls off for it.")
    done = threading.Event()
    server = grpc.server(futures.ThreadPoolExecutor(32), options=[("grpc.max_receive_message_length", LIMIT),
                                                                   ("grpc.max_send_message_length", LIMIT)])

    def unary(call, request=lambda b: b, response=lambda b: b):
        return grpc.unary_unary_rpc_method_handler(lambda r, _: call(r), request, response)

    def serve(name, methods):
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, methods),))

    to_bytes = lambda m: m.SerializeToString()
    serve("earshot.decoder.v1.Decoder", {
        "Describe": unary(lambda r: INFO, response=to_bytes),
        "Check": unary(lambda r: pb.CheckResponse(problems=["options: there are none"] if r.options else []),
                       pb.CheckRequest.FromString, to_bytes),
        "Decode": grpc.stream_stream_rpc_method_handler(decode, pb.DecodeRequest.FromString, to_bytes),
    })
    if not os.environ.get("REFERENCE_BARE"):  # the services that PROTOCOL.md calls optional
        serve("grpc.health.v1.Health", {"Check": unary(lambda _: b"\x08\x01")})  # SERVING
        serve("plugin.GRPCController", {"Shutdown": unary(lambda _: done.set() or b"")})
    path = os.path.join(os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.mkdtemp(), "reference-%d" % os.getpid())
    server.add_insecure_port("unix:" + path)
    server.start()
    print("1|1|unix|%s|grpc" % path, flush=True)
    done.wait()
    server.stop(None).wait()


if __name__ == "__main__":
    main()
