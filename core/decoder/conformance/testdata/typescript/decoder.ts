// The decoder of the invented format "reference" on the SDK, core/sdk/typescript.
import * as pb from "./decoder_pb.js";
import { Refused, serve, type Decoder, type Output, type Record } from "./earshot.js";

type Answer = { chat: string; run: string; id: string; text: string };

class Reference implements Decoder {
  state: { chat: string; run: string; answers: Answer[] };

  constructor(opened: pb.Open) {
    if (opened.options) throw new Refused("options: there are none");
    this.state = { chat: opened.origin, run: "", answers: [] };
  }

  decode(frame: pb.Frame, data: Uint8Array, out: Output): void {
    if (frame.kind === pb.FrameKind.CLOSE) return;
    const record = out.record(data);
    if (!record) return;
    const first = out.result.messages.length, s = this.state;
    s.chat = record.text("chat") || s.chat;
    const [kind, key, tool] = [record.text("type"), record.text("id"), record.text("tool")];
    if (["user", "delta", "end", "answer", "call", "result"].includes(kind) && (!key || (kind === "call" && !tool))) {
      out.problem("wrong_type", `a ${kind} without its id or tool`);
      return;
    }
    const mine = (a: Answer) => a.chat === s.chat && a.id === key;
    switch (kind) {
      case "user":
        s.run = key;
        out.add({ ...this.common(key, record), kind: pb.Kind.USER, role: pb.Role.USER, content: record.text("text"), signal: pb.Signal.RUN_START });
        break;
      case "delta": {
        if (!s.answers.some(mine)) s.answers.push({ chat: s.chat, run: s.run, id: key, text: "" });
        s.answers.find(mine)!.text += record.text("text");
        break;
      }
      case "end":
      case "answer": {
        const pieces = s.answers.filter(mine).map((a) => a.text).join("");
        if (kind === "end") s.answers = s.answers.filter((a) => !mine(a));
        const content = kind === "answer" ? record.text("text") : pieces;
        out.add({ ...this.common(key, record), kind: pb.Kind.ASSISTANT, role: pb.Role.ASSISTANT, content, responseId: key });
        const usage = { input: count(record, "in"), output: count(record, "out"), provenance: pb.Provenance.PROVIDER };
        out.add({ ...this.common("usage:" + key, record), kind: pb.Kind.USAGE, responseId: key, hidden: true, usage });
        break;
      }
      case "call": {
        const toolArguments = JSON.stringify(take(record, "args")) ?? "";
        out.add({ ...this.common("call:" + key, record), kind: pb.Kind.TOOL_CALL, toolCallId: key, toolName: tool, toolArguments });
        break;
      }
      case "result": {
        const isError = record.members.get("error") === true;
        out.add({ ...this.common("result:" + key, record), kind: pb.Kind.TOOL_RESULT, toolCallId: key, content: record.text("text"), isError });
        break;
      }
      default:
        out.unknown(kind, s.chat, data);
        return;
    }
    // Only records with a text of 16 characters among what was not read, as the decoder in Go.
    if ([...record.unread.values()].some(long)) out.keep(record, first, s.chat, s.run);
  }

  flush(out: Output): void {
    for (const a of this.state.answers) {
      out.add({ key: a.id, session: a.chat, run: a.run, kind: pb.Kind.ASSISTANT, role: pb.Role.ASSISTANT, content: a.text, responseId: a.id,
        complete: pb.Completeness.PARTIAL });
    }
  }

  private common(key: string, record: Record) {
    return { key, session: this.state.chat, run: this.state.run, ...when(record) };
  }
}

function long(v: unknown): boolean {
  if (typeof v === "string") return [...v].length >= 16;
  return typeof v === "object" && v !== null && Object.values(v).some(long);
}

function take(record: Record, name: string): unknown {
  record.unread.delete(name);
  return record.members.get(name);
}

function count(record: Record, name: string): bigint {
  const n = record.members.get(name);
  return Number.isSafeInteger(n) && (n as number) >= 0 ? BigInt(take(record, name) as number) : 0n;
}

function when(record: Record): { time: bigint; precision: pb.Precision } {
  const at = record.members.get("at");
  if (Number.isInteger(at) && (at as number) >= 1e9 && (at as number) < 1e10) {
    return { time: BigInt(take(record, "at") as number) * 1_000_000_000n, precision: pb.Precision.SECONDS };
  }
  const found = typeof at === "string" ? /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$/.exec(at) : null;
  if (!found) return { time: 0n, precision: pb.Precision.INFERRED };
  take(record, "at");
  const digits = found[2] ?? "";
  const time = BigInt(Date.parse(found[1] + "Z")) * 1_000_000n + BigInt(digits.padEnd(9, "0"));
  return { time, precision: pb.Precision.SECONDS + Math.ceil(digits.length / 3) };
}

serve({
  name: "reference", version: "1.0.0", revision: 1, summary: "Decodes an invented format.", reload: true,
  transports: [pb.FrameKind.LINE, pb.FrameKind.EVENT, pb.FrameKind.TEXT],
}, (opened) => new Reference(opened));
