"""Makes a decoder a process that Earshot can run: earshot.serve(pb.DescribeResponse(name="acme", ...), Acme),
where Acme is a Decoder. core/proto/PROTOCOL.md is the protocol, and D1 to D12 are its rules."""
import concurrent.futures, hashlib, json, os, sys, tempfile, threading, traceback

import grpc
import decoder_pb2 as pb


class Decoder:
    """Decodes one stream. state, a dict that JSON can hold, is the snapshot: keep in it what is open."""

    def __init__(self, opened):
        """opened has origin, source and options (JSON, or empty). A ValueError refuses the options."""
        self.state = {}

    def decode(self, frame, data, out):
        """Adds the messages of one frame: a pb.Frame (kind, name, id, from_client), and its bytes."""

    def flush(self, out):
        """Adds what is open, as incomplete messages, and changes nothing."""


class Output:
    """The result of a batch. frame is the index of the frame that is decoded."""

    def __init__(self, result):
        self.result, self.frame, self.offset = result, -1, 0

    def add(self, **fields):
        """Adds a message, complete unless fields say otherwise, and returns it."""
        return self.result.messages.add(frame=self.frame, **{"complete": pb.COMPLETENESS_COMPLETE, **fields})

    def problem(self, reason, detail):
        """Reports a frame that cannot be decoded; detail quotes no payload."""
        self.result.problems.add(frame=self.frame, reason=reason, detail=detail)

    def unknown(self, name, session, data):
        """Keeps a frame of an unknown type raw (D7), by its range."""
        return self.add(key="unknown:" + hash_key(data), session=session, kind=pb.KIND_UNKNOWN, hidden=True,
                        content_at=pb.Range(offset=self.offset, length=len(data)), attrs=[pb.Attr(key="type", value=name or "?")])

    def record(self, data):
        """Reads a frame that is a JSON object; otherwise reports its problem and returns None."""
        try:
            value = json.loads(data.decode(), parse_constant=lambda c: 1 / 0)
        except (ValueError, ArithmeticError, RecursionError) as e:
            return self.problem("invalid_utf8" if isinstance(e, UnicodeDecodeError) else "invalid_json", type(e).__name__)
        return Record(value) if isinstance(value, dict) else self.problem("wrong_type", "a record is an object")

    def keep(self, record, first, session, **fields):
        """Keeps the members of a record that were not read (D7), in message number first if the frame has it."""
        raw, messages = json.dumps({"/" + name: value for name, value in record.unread.items()}), self.result.messages
        if record.unread and len(messages) > first and len(raw) <= 2048:
            messages[first].attrs.add(key="unknown_fields", value=raw)
        elif record.unread:
            self.add(key="unknown_fields:" + hash_key(session, raw), session=session, kind=pb.KIND_UNKNOWN, hidden=True, content=raw,
                     attrs=[pb.Attr(key="type", value="unknown_fields")], **fields)


class Record:
    """A JSON object; unread has its members that were not read, or had another type than was expected."""

    def __init__(self, value):
        self.value, self.unread = value, dict(value)

    def get(self, name, kind=str, default=""):
        v = self.value.get(name)
        if type(v) is not kind:
            return default
        self.unread.pop(name, None)
        # Half a surrogate pair is no text: protobuf would refuse the whole response.
        return v.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if kind is str else v


def hash_key(*parts):
    """A key of protocol facts, for messages without an id."""
    data = b""
    for part in (p if isinstance(p, bytes) else p.encode(errors="replace") for p in parts):
        varint = [len(part) >> shift & 127 | 128 for shift in range(0, max(len(part).bit_length(), 1), 7)]
        data += bytes(varint[:-1] + [varint[-1] & 127]) + part
    return hashlib.sha256(data).hexdigest()[:32]


def _batch(factory, streams, batch, out):
    if batch.HasField("open"):
        d = streams[batch.stream] = factory(batch.open)
        if batch.open.snapshot:
            d.state = json.loads(batch.open.snapshot)
    d, at = streams[batch.stream], 0
    for out.frame, f in enumerate(batch.frames):
        out.offset = at + f.skip
        at = out.offset + f.length
        messages, problems = len(out.result.messages), len(out.result.problems)
        try:
            d.decode(f, batch.data[out.offset:at], out)
        except Exception as e:  # it costs this frame, which the host keeps as a problem
            del out.result.messages[messages:], out.result.problems[problems:]
            out.problem("decoder_panic", type(e).__name__)
            traceback.print_tb(e.__traceback__)  # without the message, which may quote the frame
    if batch.flush:
        d.flush(out)
    if batch.snapshot:
        out.result.snapshot = json.dumps(d.state).encode()


def _lane(factory, requests):
    """Answers one Decode call: a response for each request, a result for each batch."""
    streams = {}
    for request in requests:
        response = pb.DecodeResponse()
        for batch in request.batches:
            result = response.results.add(stream=batch.stream)
            try:
                _batch(factory, streams, batch, Output(result))
            except Exception as e:  # the stream's failure; no other stream suffers
                refused = isinstance(e, ValueError) and batch.HasField("open") and not batch.open.snapshot
                result.failure.MergeFrom(pb.Failure(error=str(e) if refused else type(e).__name__, permanent=refused, frame=-1))
            if batch.close or result.HasField("failure"):
                streams.pop(batch.stream, None)
        yield response


def serve(info, factory):
    """Serves decoders until the host ends the process. info is a pb.DescribeResponse."""
    if os.environ.get("EARSHOT_DECODER") != "a77f6c1e5f0b4b3d9c1f":
        sys.exit("This is an Earshot decoder; earshot starts it.")
    if os.environ.get("PLUGIN_CLIENT_CERT"):
        sys.exit("This decoder does not speak TLS: switch auto_mtls off for it.")
    info.snapshots, done = True, threading.Event()

    def check(request):
        try:
            factory(pb.Open(options=pb.CheckRequest.FromString(request).options))
        except ValueError as e:
            return pb.CheckResponse(problems=[str(e)]).SerializeToString()
        return b""

    server = grpc.server(concurrent.futures.ThreadPoolExecutor(64), options=[("grpc.max_%s_message_length" % d, 256 << 20) for d in ("receive", "send")])
    unary = lambda call: grpc.unary_unary_rpc_method_handler(lambda request, _: call(request))
    lane = grpc.stream_stream_rpc_method_handler(lambda r, _: _lane(factory, r), pb.DecodeRequest.FromString, pb.DecodeResponse.SerializeToString)
    add = lambda service, **methods: server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, methods),))
    add("earshot.decoder.v1.Decoder", Describe=unary(lambda _: info.SerializeToString()), Check=unary(check), Decode=lane)
    add("grpc.health.v1.Health", Check=unary(lambda _: b"\x08\x01"))  # SERVING
    add("plugin.GRPCController", Shutdown=unary(lambda _: done.set() or b""))
    path = os.path.join(os.environ.get("PLUGIN_UNIX_SOCKET_DIR") or tempfile.mkdtemp(), "decoder-%d" % os.getpid())
    server.add_insecure_port("unix:" + path)
    server.start()
    print("1|1|unix|%s|grpc" % path, flush=True)
    done.wait()
    server.stop(None).wait()
