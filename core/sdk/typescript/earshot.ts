/** Makes a decoder a process that Earshot can run. core/proto/PROTOCOL.md is the protocol, and D1 to D12 are its rules. */
import { createHash } from "node:crypto";
import { create, fromBinary, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import * as grpc from "@grpc/grpc-js";
import * as pb from "./decoder_pb.js";

/** Decodes one stream. */
export interface Decoder {
  state: unknown; // the snapshot, which JSON can hold: what is open
  decode(frame: pb.Frame, data: Uint8Array, out: Output): void; // adds the messages of one frame, with these bytes
  flush(out: Output): void; // adds what is open, as incomplete messages, and changes nothing
}

/** Makes the decoder of a stream; throws Refused for wrong options. */
export type Factory = (opened: pb.Open) => Decoder;
export class Refused extends Error {}

/** The result of a batch. frame and offset are those of the frame that is decoded. */
export class Output {
  constructor(readonly result: pb.Result, public frame = -1, public offset = 0) {}

  /** Adds a message, complete unless fields say otherwise. */
  add(fields: MessageInitShape<typeof pb.MessageSchema>): void {
    this.result.messages.push(create(pb.MessageSchema, { frame: this.frame, complete: pb.Completeness.COMPLETE, ...fields }));
  }

  /** Reports a frame that cannot be decoded; detail quotes no payload. */
  problem(reason: string, detail: string): undefined {
    this.result.problems.push(create(pb.ProblemSchema, { frame: this.frame, reason, detail }));
  }

  /** Keeps a frame of an unknown type raw (D7), by its range. */
  unknown(name: string, session: string, data: Uint8Array): void {
    const [contentAt, attrs] = [{ offset: this.offset, length: data.length }, [{ key: "type", value: name || "?" }]];
    this.add({ key: "unknown:" + hashKey(data), session, kind: pb.Kind.UNKNOWN, hidden: true, contentAt, attrs });
  }

  /** Reads a frame that is a JSON object; otherwise reports its problem. */
  record(data: Uint8Array): Record | undefined {
    let value: unknown;
    try {
      value = JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(data));
    } catch (e) {
      return this.problem(e instanceof SyntaxError ? "invalid_json" : "invalid_utf8", (e as Error).name);
    }
    if (Object.prototype.toString.call(value) !== "[object Object]") return this.problem("wrong_type", "a record is an object");
    return new Record(new Map(Object.entries(value as object)));
  }

  /** Keeps the members of a record that were not read (D7), in message number first if the frame has it. */
  keep(record: Record, first: number, session: string, run = ""): void {
    if (record.unread.size === 0) return;
    const content = JSON.stringify(Object.fromEntries([...record.unread].map(([name, value]) => ["/" + name, value])));
    const message = Buffer.byteLength(content) <= 2048 ? this.result.messages[first] : undefined;
    const add = { key: "unknown_fields:" + hashKey(session, content), session, run, kind: pb.Kind.UNKNOWN, hidden: true, content };
    if (message) message.attrs.push(create(pb.AttrSchema, { key: "unknown_fields", value: content }));
    else this.add({ ...add, attrs: [{ key: "type", value: "unknown_fields" }] });
  }
}

/** A JSON object; unread has its members that were not read, or had another type than was expected. */
export class Record {
  constructor(readonly members: Map<string, unknown>, readonly unread = new Map(members)) {}

  /** The member if it is a string, without half surrogate pairs, which are no text. */
  text(name: string): string {
    const v = this.members.get(name);
    if (typeof v !== "string") return "";
    this.unread.delete(name);
    return v.toWellFormed();
  }
}

/** A key of protocol facts, for messages without an id. */
export function hashKey(...parts: (string | Uint8Array)[]): string {
  const hash = createHash("sha256");
  for (const part of parts.map((p) => Buffer.from(p as string))) {
    let n = part.length;
    for (; n > 127; n = Math.floor(n / 128)) hash.update(Uint8Array.of((n % 128) | 128));
    hash.update(Uint8Array.of(n)).update(part);
  }
  return hash.digest("hex").slice(0, 32);
}

function decode(factory: Factory, streams: Map<bigint, Decoder>, batch: pb.Batch, out: Output): void {
  if (batch.open) streams.set(batch.stream, factory(batch.open));
  const decoder = streams.get(batch.stream)!, { messages, problems } = out.result;
  if (batch.open?.snapshot.length) decoder.state = JSON.parse(Buffer.from(batch.open.snapshot).toString());
  for (let i = 0, at = 0; i < batch.frames.length; i++) {
    const frame = batch.frames[i]!, before = [messages.length, problems.length] as const;
    [out.frame, out.offset] = [i, at + frame.skip];
    at = out.offset + frame.length;
    try {
      decoder.decode(frame, batch.data.subarray(out.offset, at), out);
    } catch (e) { // it costs this frame, which the host keeps as a problem
      [messages.length, problems.length] = before;
      out.problem(e instanceof RangeError ? "too_deep" : "decoder_panic", (e as Error).name); // of the call stack
    }
  }
  if (batch.flush) decoder.flush(out);
  if (batch.snapshot) out.result.snapshot = Buffer.from(JSON.stringify(decoder.state));
}

/** Answers one request of a lane: a response with a result for each batch. */
function answer(factory: Factory, streams: Map<bigint, Decoder>, request: Buffer): Uint8Array {
  const results = fromBinary(pb.DecodeRequestSchema, request).batches.map((batch) => {
    const result = create(pb.ResultSchema, { stream: batch.stream });
    try {
      decode(factory, streams, batch, new Output(result));
    } catch (e) { // the stream's failure; no other stream suffers
      const permanent = e instanceof Refused;
      result.failure = create(pb.FailureSchema, { error: permanent ? e.message : (e as Error).name, permanent, frame: -1 });
    }
    if (batch.close || result.failure) streams.delete(batch.stream);
    return result;
  });
  return toBinary(pb.DecodeResponseSchema, create(pb.DecodeResponseSchema, { results }));
}

/** Serves decoders until the host ends the process. */
export function serve(info: MessageInitShape<typeof pb.DescribeResponseSchema>, factory: Factory): void {
  const refuse = (why: string) => (console.error(why), process.exit(1));
  if (process.env["EARSHOT_DECODER"] !== "a77f6c1e5f0b4b3d9c1f") refuse("This is an Earshot decoder; earshot starts it.");
  if (process.env["PLUGIN_CLIENT_CERT"]) refuse("This decoder does not speak TLS: switch auto_mtls off for it.");
  const check = (request: Buffer) => {
    try {
      factory(create(pb.OpenSchema, { options: fromBinary(pb.CheckRequestSchema, request).options }));
      return Uint8Array.of();
    } catch (e) {
      return toBinary(pb.CheckResponseSchema, create(pb.CheckResponseSchema, { problems: [(e as Error).message] }));
    }
  };
  const b = (bytes: Buffer) => bytes, codec = { requestSerialize: b, requestDeserialize: b, responseSerialize: b, responseDeserialize: b };
  const unary = (call: (request: Buffer) => Uint8Array): grpc.handleUnaryCall<Buffer, Buffer> => (c, done) => done(null, Buffer.from(call(c.request)));
  const lane: grpc.handleBidiStreamingCall<Buffer, Buffer> = (call) => {
    const streams = new Map<bigint, Decoder>();
    call.on("data", (request: Buffer) => call.write(Buffer.from(answer(factory, streams, request)))).on("end", () => call.end());
  };
  const describe = toBinary(pb.DescribeResponseSchema, create(pb.DescribeResponseSchema, { ...info, snapshots: true }));
  const server = new grpc.Server({ "grpc.max_receive_message_length": 256 << 20, "grpc.max_send_message_length": 256 << 20 });
  const add = (path: string, call: grpc.UntypedHandleCall, stream = false) => 
    server.addService({ call: { path, requestStream: stream, responseStream: stream, ...codec } }, { call });
  add("/earshot.decoder.v1.Decoder/Describe", unary(() => describe));
  add("/earshot.decoder.v1.Decoder/Check", unary(check));
  add("/earshot.decoder.v1.Decoder/Decode", lane, true);
  add("/grpc.health.v1.Health/Check", unary(() => Uint8Array.of(8, 1))); // SERVING
  add("/plugin.GRPCController/Shutdown", unary(() => (setImmediate(() => server.tryShutdown(() => process.exit(0))), Uint8Array.of())));
  const path = `${process.env["PLUGIN_UNIX_SOCKET_DIR"]}/decoder-${process.pid}`;
  server.bindAsync("unix:" + path, grpc.ServerCredentials.createInsecure(), (error) => (error ? refuse(error.message) : console.log(`1|1|unix|${path}|grpc`)));
}
