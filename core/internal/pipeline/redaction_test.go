package pipeline_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/checkpoint"
	"github.com/earshot-dev/earshot/core/internal/delivery"
	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/internal/journal"
	"github.com/earshot-dev/earshot/core/internal/pipeline"
	"github.com/earshot-dev/earshot/core/internal/redact"
	"github.com/earshot-dev/earshot/core/internal/redact/seeded"
	"github.com/earshot-dev/earshot/core/internal/source"
	"github.com/earshot-dev/earshot/core/internal/telemetry"
	"github.com/earshot-dev/earshot/core/msg"
)

// place is where a secret lies in the traffic of a format.
type place struct {
	name, format string
	frames       func(text, id string) []frame.Frame
}

func frameOf(kind frame.Kind, name string, v any) frame.Frame {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return frame.Frame{Kind: kind, Name: name, Data: b}
}

type object = map[string]any

// pieces are four bytes each.
func pieces(s string) (out []string) {
	for len(s) > 4 {
		out, s = append(out, s[:4]), s[4:]
	}
	return append(out, s)
}

// escapedWholly is a JSON string of \u escapes alone.
func escapedWholly(s string) json.RawMessage {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		fmt.Fprintf(&b, `\u%04x`, r)
	}
	b.WriteByte('"')
	return json.RawMessage(b.String())
}

// answer is a response of the Messages API, streamed: blocks are the start of one and its deltas.
func answer(id string, start object, deltas ...object) []frame.Frame {
	event := func(v object) frame.Frame { return frameOf(frame.Event, v["type"].(string), v) }
	out := []frame.Frame{
		frameOf(frame.Request, "POST /v1/messages", object{"model": "claude", "stream": true, "messages": []any{object{"role": "user", "content": "go " + id}}}),
		event(object{"type": "message_start", "message": object{"id": "msg_" + id, "type": "message", "role": "assistant", "model": "claude", "content": []any{}, "usage": object{"input_tokens": 1}}}),
		event(object{"type": "content_block_start", "index": 0, "content_block": start}),
	}
	for _, d := range deltas {
		out = append(out, event(object{"type": "content_block_delta", "index": 0, "delta": d}))
	}
	return append(out, event(object{"type": "content_block_stop", "index": 0}),
		event(object{"type": "message_delta", "delta": object{"stop_reason": "end_turn"}, "usage": object{"output_tokens": 9}}),
		event(object{"type": "message_stop"}))
}

// prompt is a request of the Messages API with one message, and its answer.
func prompt(id string, content any) []frame.Frame {
	out := answer(id, object{"type": "text", "text": "Yes."})
	out[0] = frameOf(frame.Request, "POST /v1/messages", object{"model": "claude", "stream": true, "messages": []any{object{"role": "user", "content": content}}})
	return out
}

func grace(text string) object {
	return object{"role": "assistant", "uuid": "", "status": "success", "content": text, "timestamp": 1772447400731, "type": "",
		"meta": object{"task_id": "", "action_type": "auto_reply", "is_active": true}}
}

func inBase64(v object) frame.Frame {
	f := frameOf(frame.Event, "message", v)
	f.Data = []byte(base64.StdEncoding.EncodeToString(f.Data))
	return f
}

func places() []place {
	deltas := func(kind, field string, texts []string) (out []object) {
		for _, s := range texts {
			out = append(out, object{"type": kind, field: s})
		}
		return out
	}
	call := func(name string) object {
		return object{"type": "tool_use", "id": "toolu_x", "name": name, "input": object{}}
	}
	arguments := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	return []place{
		{"text deltas", "anthropic-sse", func(s, id string) []frame.Frame {
			return answer(id, object{"type": "text", "text": ""}, deltas("text_delta", "text", pieces("It is "+s+" indeed"))...)
		}},
		{"thinking deltas", "anthropic-sse", func(s, id string) []frame.Frame {
			return answer(id, object{"type": "thinking", "thinking": ""}, deltas("thinking_delta", "thinking", pieces("It is "+s+" indeed"))...)
		}},
		{"arguments", "anthropic-sse", func(s, id string) []frame.Frame {
			return answer(id, call("bash"), deltas("input_json_delta", "partial_json", pieces(arguments(object{"command": "echo " + s + " | cat"})))...)
		}},
		{"task", "anthropic-sse", func(s, id string) []frame.Frame {
			return answer(id, call("Task"), deltas("input_json_delta", "partial_json", pieces(arguments(object{"prompt": "use " + s + " there", "description": "d", "subagent_type": "x"})))...)
		}},
		{"escaped deltas", "anthropic-sse", func(s, id string) []frame.Frame {
			var out []object
			for _, p := range pieces("It is " + s + " indeed") {
				out = append(out, object{"type": "text_delta", "text": escapedWholly(p)})
			}
			return answer(id, object{"type": "text", "text": ""}, out...)
		}},
		{"prompt", "anthropic-sse", func(s, id string) []frame.Frame { return prompt(id, "use "+s+" there "+id) }},
		{"escaped prompt", "anthropic-sse", func(s, id string) []frame.Frame { return prompt(id, escapedWholly("use "+s+" there "+id)) }},
		{"result", "anthropic-sse", func(s, id string) []frame.Frame {
			return prompt(id, []any{object{"type": "tool_result", "tool_use_id": "toolu_" + id, "content": []any{object{"type": "text", "text": "is " + s + " so " + id}}}})
		}},
		{"attribute", "anthropic-sse", func(s, id string) []frame.Frame {
			out := prompt(id, "go "+id)
			out[0] = frameOf(frame.Request, "POST /v1/messages", object{"model": "claude", "stream": true, "metadata": object{"note": "is " + s + " so"}, "messages": []any{object{"role": "user", "content": "go " + id}}})
			return out
		}},
		{"unknown frame", "anthropic-sse", func(s, id string) []frame.Frame {
			return []frame.Frame{frameOf(frame.Event, "hologram", object{"type": "hologram", "note": "is " + s + " so " + id})}
		}},
		{"damaged frame", "anthropic-sse", func(s, id string) []frame.Frame {
			return []frame.Frame{{Kind: frame.Event, Name: "message_start", Data: []byte(`{"type": "message_start", "x": ` + arguments("is "+s+" so"))}}
		}},
		{"chat deltas", "openai-chat", func(s, id string) (out []frame.Frame) {
			out = append(out, frameOf(frame.Request, "POST /v1/chat/completions", object{"model": "m", "stream": true, "messages": []any{object{"role": "user", "content": "go " + id}}}))
			for _, p := range pieces("It is " + s + " indeed") {
				out = append(out, frameOf(frame.Event, "", object{"id": "c" + id, "object": "chat.completion.chunk", "model": "m", "choices": []any{object{"index": 0, "delta": object{"role": "assistant", "content": p}}}}))
			}
			return append(out, frameOf(frame.Event, "", object{"id": "c" + id, "object": "chat.completion.chunk", "model": "m", "choices": []any{object{"index": 0, "delta": object{}, "finish_reason": "stop"}}}),
				frame.Frame{Kind: frame.Event, Data: []byte("[DONE]")})
		}},
		{"base64", "grace", func(s, id string) []frame.Frame {
			return []frame.Frame{inBase64(grace("It is " + id)), inBase64(grace("is " + s + " so"))}
		}},
		{"base64, unknown", "grace", func(s, id string) []frame.Frame {
			return []frame.Frame{inBase64(grace("It is " + id)), inBase64(object{"hologram": "is " + s + " so"})}
		}},
		{"chunks", "grace", func(s, id string) (out []frame.Frame) {
			for _, p := range pieces("is " + s + " so") {
				out = append(out, frameOf(frame.Event, "", object{"id": "c0", "object": "chat.completion.chunk", "created": 1772445601, "model": "gpt", "choices": []any{object{"index": 0, "delta": object{"content": p}}}}))
			}
			return append(out, frame.Frame{Kind: frame.Event, Data: []byte("[DONE]")})
		}},
	}
}

// recordSeeds records a stream of each kind in each place, as a listener does.
func recordSeeds(t *testing.T, r *redact.Redactor, kinds []seeded.Kind) (dir string) {
	t.Helper()
	dir = t.TempDir()
	j, err := journal.Open(journal.Settings{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range places() {
		for i, k := range kinds {
			rec, err := r.Recorder(j.Recorder(p.format)).Begin(t.Context(), p.format, source.ID{Key: fmt.Sprintf("%s/%d", p.name, i), Origin: fmt.Sprintf("/%s/%d", p.name, i), Anchor: 1_700_000_000e9})
			if err != nil {
				t.Fatal(err)
			}
			for n, f := range p.frames(k.Text, fmt.Sprintf("%s %d", p.name, i)) {
				f.FromClient, f.At = f.Kind == frame.Request, 1_700_000_000e9+int64(n)
				if err := rec.Record(t.Context(), &f); err != nil {
					t.Fatal(err)
				}
			}
			if err := rec.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// decodeSeeds decodes the recordings with the real decoders, each in its process. second may be nil.
func decodeSeeds(t *testing.T, recorded string, second pipeline.Redactor, metrics *telemetry.Metrics, log *slog.Logger) *table {
	t.Helper()
	dir, own, rows := t.TempDir(), t.TempDir(), newTable()
	if err := os.CopyFS(own, os.DirFS(recorded)); err != nil {
		t.Fatal(err)
	}
	j, err := journal.Open(journal.Settings{Dir: own, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	check, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer check.Close()
	d, err := delivery.New(delivery.Settings{SpoolDir: dir + "/spool", Logger: log}, check, delivery.Target{Name: "table", Exporter: rows})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	p := pipeline.New(pipeline.Settings{FlushInterval: 5 * time.Millisecond, Logger: log, Metrics: metrics}, check, d)
	ctx, cancel := context.WithCancel(t.Context())
	sources, end := context.WithCancel(ctx)
	var running, reading sync.WaitGroup
	var all []source.Source
	sockets, err := os.MkdirTemp("", "es")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(sockets)
	for _, format := range []string{"anthropic-sse", "openai-chat", "grace"} {
		_, err := p.AddFormat(ctx, format, func(ctx context.Context) (*host.Process, error) {
			return host.Start(ctx, host.Settings{Name: format, Path: os.Args[0], Args: []string{"decoder", format}, SocketDir: sockets, Logger: log})
		})
		if err != nil {
			t.Fatal(err)
		}
		feed, err := p.AddFeed(format, "default", format, "", true)
		if err != nil {
			t.Fatal(err)
		}
		if second != nil {
			feed.SetRedactor(second)
		}
		reader := j.Reader(format, format, feed.Known())
		all = append(all, reader)
		reading.Go(func() { _ = reader.Run(sources, feed) })
	}
	running.Go(func() { d.Run(ctx) })
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	deadline := time.After(2 * time.Minute)
	for calm := 0; calm < 3; calm++ {
		select {
		case <-deadline:
			t.Fatal("not drained")
		case <-time.After(5 * time.Millisecond):
		}
		for _, s := range all {
			if !s.Drained() || !p.Drained(t.Context()) || !d.Settled() {
				calm = -1
			}
		}
	}
	if err := p.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	for !d.Settled() {
		time.Sleep(time.Millisecond)
	}
	end()
	reading.Wait()
	cancel()
	running.Wait()
	return rows
}

// TestSecretsAreGoneWhereverTheyLie has every seeded kind of secret in every place, through
// the journal and the decoders: no row, span, dead letter, log line or metric has it. The
// second pass leaves every id as it is, and does the same in a replay.
func TestSecretsAreGoneWhereverTheyLie(t *testing.T) {
	counts, mu := make(map[string]int), sync.Mutex{}
	r, err := redact.New(redact.Settings{Builtin: true, Count: func(rule string, n int) { mu.Lock(); counts[rule] += n; mu.Unlock() }})
	if err != nil {
		t.Fatal(err)
	}
	kinds := seeded.Kinds()
	recorded := recordSeeds(t, r, kinds)
	if len(counts) == 0 {
		t.Error("the first pass counted nothing")
	}
	clear(counts)
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	metrics := telemetry.New()
	rows := decodeSeeds(t, recorded, r, metrics, log)
	if len(counts) == 0 {
		t.Error("the second pass counted nothing")
	}
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := rows.dump()
	said := make(map[string][]string) // by the stream's origin
	for _, m := range rows.messages {
		said[m.Host.Origin] = append(said[m.Host.Origin], unescaped(fmt.Sprintf("%s %s %s %v %v", m.Content, m.Tool.Arguments, m.Delegation.Task, m.Attrs, m.Tool)))
	}
	for _, l := range rows.letters {
		said[l.Origin] = append(said[l.Origin], unescaped(string(l.Payload)+l.Detail))
	}
	for _, p := range places() {
		for i, k := range kinds {
			texts := said[fmt.Sprintf("/%s/%d", p.name, i)]
			if len(texts) == 0 {
				t.Errorf("%s in %s: no row at all", k.Name, p.name)
			}
			for _, text := range texts {
				if strings.Contains(text, k.Secret) {
					t.Errorf("%s in %s: %s", k.Name, p.name, text)
				}
			}
		}
	}
	stored, beside := unescaped(all), unescaped(out.String()+fmt.Sprint(families))
	for _, k := range kinds {
		if strings.Contains(stored, k.Secret) || strings.Contains(beside, k.Secret) {
			t.Errorf("%s is in a row, a span, a log or a metric", k.Name)
		}
	}
	again := decodeSeeds(t, recorded, r, telemetry.New(), log)
	if d := differ(all, again.dump()); d != "" {
		t.Errorf("a replay has other rows:\n%s", d)
	}
	bare := decodeSeeds(t, recorded, nil, telemetry.New(), log)
	if len(bare.messages) != len(rows.messages) || len(bare.spans) != len(rows.spans) {
		t.Errorf("%d messages and %d spans, %d and %d without the second pass", len(rows.messages), len(rows.spans), len(bare.messages), len(bare.spans))
	}
	for id, m := range bare.messages {
		if got, ok := rows.messages[id]; !ok || names(&got) != names(&m) {
			t.Errorf("the second pass changed the identity of %s: %s", names(&m), names(&got))
		}
	}
	for key := range bare.spans {
		if _, ok := rows.spans[key]; !ok {
			t.Errorf("span %s has another id", key)
		}
	}
}

// names are the ids and keys of a message.
func names(m *msg.Message) string {
	return strings.Join([]string{m.Key, m.ParentKey, m.Session, m.Run, m.ParentRun, m.ParentCall, m.Agent.ID, m.Tool.CallID, m.Tool.ProtocolID, m.ResponseID,
		m.Delegation.ToID, m.Delegation.ChildRun, m.Delegation.CorrelationID, m.Delegation.CorrelationPrompt, m.Host.TraceID.String(), m.Host.SpanID.String()}, "|")
}

// unescaped is a text that may hold JSON, without the escapes that hide a secret there.
func unescaped(s string) string {
	return strings.NewReplacer(`\n`, "\n", `\/`, "/", `\"`, `"`, `\\`, `\`).Replace(s)
}

// TestPolicyOfASource has personal data in every place: by its policy a source keeps neither it
// nor any content, and the rows are the same ones.
func TestPolicyOfASource(t *testing.T) {
	kinds := []seeded.Kind{{Name: "e-mail", Text: "ada.lerrin@quay.example", Secret: "ada.lerrin@quay.example"}, {Name: "card", Text: "4111 1111 1111 1111", Secret: "4111 1111 1111 1111"}}
	recorded := recordSeeds(t, nil, kinds)
	log := slog.New(slog.DiscardHandler)
	bare := decodeSeeds(t, recorded, nil, telemetry.New(), log)
	for _, p := range []redact.Policy{{Personal: redact.Mask}, {Personal: redact.Drop}, {Personal: redact.Token, Salt: []byte("quay")}, {Content: redact.Metadata}, {Content: redact.None}} {
		var none *redact.Redactor
		f, err := none.Filter(p, func(string, int) {})
		if err != nil {
			t.Fatal(err)
		}
		rows := decodeSeeds(t, recorded, f, telemetry.New(), log)
		all := unescaped(rows.dump())
		for _, k := range kinds {
			if strings.Contains(all, k.Secret) {
				t.Errorf("%+v: %s is in a row", p, k.Name)
			}
		}
		if withheld := p.Content != ""; withheld == strings.Contains(all, "indeed") {
			t.Errorf("%+v: content is withheld: %v", p, withheld)
		}
		if len(rows.messages) != len(bare.messages) || len(rows.spans) != len(bare.spans) {
			t.Errorf("%+v: %d messages and %d spans, want %d and %d", p, len(rows.messages), len(rows.spans), len(bare.messages), len(bare.spans))
		}
		for id, m := range bare.messages {
			if got, ok := rows.messages[id]; !ok || names(&got) != names(&m) {
				t.Errorf("%+v: %s became %s", p, names(&m), names(&got))
			}
		}
	}
}
