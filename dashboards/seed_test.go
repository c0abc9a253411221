package dashboards

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/export"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/exporters/clickhouse"
)

// Facts of the transcripts that tests compare with.
const (
	lighthouse = "5eafa11e-0000-4000-8000-000000000001" // the session
	scouts     = 6                                      // turns, each with a delegation to the agent surveyor
	lastPrompt = "1a3b0000-0000-4000-8000-000000000031" // of its last turn
)

// writeTranscripts writes a conversation as Claude Code keeps it: in every turn
// a tool call and a delegation whose agent has a transcript of its own. Turn n's
// delegation takes 10 n + 2 seconds.
func writeTranscripts(dir string, start time.Time) error {
	main := filepath.Join(dir, "-srv-lighthouse")
	agents := filepath.Join(main, lighthouse, "subagents")
	if err := os.MkdirAll(agents, 0o700); err != nil {
		return err
	}
	t := &transcript{at: start, parent: "null"}
	for n := 1; n <= scouts; n++ {
		call, agent := fmt.Sprintf("toolu_lamp_%d", n), fmt.Sprintf("a%016d", n)
		t.user(fmt.Sprintf(`"How many lamps of pier %d are out?"`, n))
		t.wait(3 * time.Second)
		t.assistant(fmt.Sprintf("msg_a%d", n), fmt.Sprintf(`{"type":"tool_use","id":"toolu_map_%d","name":"Read","input":{"file_path":"/srv/lighthouse/piers.csv"}}`, n), "tool_use")
		t.wait(time.Second)
		t.result(fmt.Sprintf("toolu_map_%d", n), "pier,lamps", n == 2)
		t.wait(2 * time.Second)
		t.assistant(fmt.Sprintf("msg_b%d", n), fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Agent","input":{"subagent_type":"surveyor","description":"Count lamps","prompt":"Count the lamps of pier %d that are out."}}`, call, n), "tool_use")

		child := &transcript{at: t.at.Add(500 * time.Millisecond), parent: "null", agent: agent}
		child.user(fmt.Sprintf(`"Count the lamps of pier %d that are out."`, n))
		child.wait(2 * time.Second)
		child.assistant(fmt.Sprintf("msg_c%d", n), fmt.Sprintf(`{"type":"tool_use","id":"toolu_count_%d","name":"Bash","input":{"command":"count-lamps %d"}}`, n, n), "tool_use")
		child.wait(time.Duration(10*n-4) * time.Second)
		child.result(fmt.Sprintf("toolu_count_%d", n), fmt.Sprint(n, " lamps"), false)
		child.wait(3 * time.Second)
		child.assistant(fmt.Sprintf("msg_d%d", n), fmt.Sprintf(`{"type":"text","text":"%d lamps are out."}`, n), "end_turn")
		if err := child.write(filepath.Join(agents, "agent-"+agent+".jsonl")); err != nil {
			return err
		}
		meta := fmt.Sprintf(`{"agentType":"surveyor","description":"Count lamps","toolUseId":%q,"spawnDepth":1}`, call)
		if err := os.WriteFile(filepath.Join(agents, "agent-"+agent+".meta.json"), []byte(meta), 0o600); err != nil {
			return err
		}
		t.wait(time.Duration(10*n+2) * time.Second)
		t.extra = fmt.Sprintf(`,"toolUseResult":{"status":"completed","agentId":%q}`, agent)
		t.result(call, fmt.Sprint(n, " lamps are out."), n == scouts)
		t.extra = ""
		t.wait(4 * time.Second)
		t.assistant(fmt.Sprintf("msg_e%d", n), fmt.Sprintf(`{"type":"text","text":"On pier %d the keeper has to change %d lamps."}`, n, n), "end_turn")
		t.wait(30 * time.Second)
	}
	fmt.Fprintf(&t.b, `{"type":"custom-title","customTitle":"Lamps of the piers","sessionId":%q}`+"\n", lighthouse)
	return t.write(filepath.Join(main, lighthouse+".jsonl"))
}

// transcript is a file in the making.
type transcript struct {
	b      strings.Builder
	at     time.Time
	n      int
	parent string
	agent  string
	extra  string // further fields of the next line
}

func (t *transcript) wait(d time.Duration) { t.at = t.at.Add(d) }

func (t *transcript) line(kind, message string) {
	t.n++
	id := fmt.Sprintf(`"1a3b0000-0000-4000-8000-%012d"`, t.n)
	if t.agent != "" {
		id = fmt.Sprintf(`"1a3b0000-0000-4000-8001-%s%06d"`, t.agent[len(t.agent)-6:], t.n)
	}
	agent := ""
	if t.agent != "" {
		agent = fmt.Sprintf(`"agentId":%q,`, t.agent)
	}
	fmt.Fprintf(&t.b, `{"parentUuid":%s,"isSidechain":%t,"userType":"external","cwd":"/srv/lighthouse","gitBranch":"lamps","sessionId":%q,"version":"2.1.229",%s"type":%q,"uuid":%s,"timestamp":%q,"message":%s%s}`+"\n",
		t.parent, t.agent != "", lighthouse, agent, kind, id, t.at.Format("2006-01-02T15:04:05.000Z"), message, t.extra)
	t.parent = id
}

func (t *transcript) user(content string) {
	t.line("user", `{"role":"user","content":`+content+`}`)
}

func (t *transcript) result(call, text string, failed bool) {
	t.user(fmt.Sprintf(`[{"tool_use_id":%q,"type":"tool_result","content":%q,"is_error":%t}]`, call, text, failed))
}

func (t *transcript) assistant(id, block, stop string) {
	t.line("assistant", fmt.Sprintf(`{"model":"claude-opus-4-5-20251101","id":%q,"type":"message","role":"assistant","content":[%s],"stop_reason":%q,"usage":{"input_tokens":10,"cache_creation_input_tokens":100,"cache_read_input_tokens":1000,"output_tokens":50}}`,
		id, block, stop))
}

func (t *transcript) write(path string) error {
	return os.WriteFile(path, []byte(t.b.String()), 0o600)
}

// seed stores rows that files cannot produce: a stream's first tokens, open work,
// a model without a price, dropped bytes, a change.
func (w *world) seed() (err error) {
	x, err := clickhouse.New(context.Background(), clickhouse.Settings{
		Conn: clickhouse.ConnSettings{DSN: w.dsn("default") + "/earshot"}, CreateSchema: true,
	})
	if err != nil {
		return err
	}
	defer func() {
		if e := x.Close(context.Background()); err == nil {
			err = e
		}
	}()
	b := &export.Batch{ID: msg.HashKey("dashboards", "seed")}
	for n := range 40 {
		start := w.began.Add(-time.Duration(40-n) * time.Minute).UnixNano()
		run := fmt.Sprint("stream-", n)
		s := msg.Span{
			Tenant: "default", Source: "tap", Format: "agno", Kind: msg.SpanChat, State: msg.SpanClosed, Outcome: msg.OutcomeOK,
			TraceID: msg.NewTraceID("default", "agno", "tides", run), ID: msg.NewSpanID("default", "agno", "tides", msg.SpanChat, run),
			Start: start, End: start + int64(10*time.Second), FirstToken: start + int64(n+1)*int64(100*time.Millisecond), Ver: 1,
			Session: "tides", Run: run, Agent: msg.Agent{Name: "tide reader"}, Model: "gull-9-preview", Usage: msg.Tokens{Input: 100, Output: 400},
		}
		b.Spans = append(b.Spans, new(s))
		m := msg.Message{
			Key: run, Session: "tides", Run: run, Kind: msg.Usage, Time: start + int64(10*time.Second), Precision: msg.Millis, Model: s.Model, Agent: s.Agent, Usage: s.Usage,
			Host: msg.Host{Tenant: "default", Source: "tap", Format: "agno", ID: msg.NewID("default", "agno", "tides", run), TraceID: s.TraceID, SpanID: s.ID, Ver: 1},
		}
		b.Messages = append(b.Messages, new(m))
		// Every fourth response was held back, and number n stalled for n+1 seconds.
		b.Streams = append(b.Streams, msg.Stream{
			Tenant: "default", Source: "tap", Format: "agno", Stream: run, Origin: "http://127.0.0.1:7777/runs", Method: "POST", Status: 200, Session: "tides", Run: run,
			Pace: msg.Pace{
				Start: start, FirstByte: 2e6, FirstChunk: 3e6, FirstEvent: 4e6, Total: 60e9, Chunks: 9, Bytes: 900, Events: 20,
				LongestStall: int64(n+1) * 1e9, GapP50: 1e6, GapP95: 8e6, Buffered: n%4 == 0,
			},
			Ver: 1,
		})
	}
	for n, kind := range []msg.SpanKind{msg.SpanRun, msg.SpanDelegation, msg.SpanTool} {
		s := msg.Span{
			Tenant: "default", Source: "tap", Format: "agno", Kind: kind, State: msg.SpanOpen, Ver: 1, Session: "tides", Run: "now",
			TraceID: msg.NewTraceID("default", "agno", "tides", "now"), ID: msg.NewSpanID("default", "agno", "tides", kind, "now"),
			Start: w.began.Add(-20 * time.Minute).UnixNano(), LastSeen: w.began.Add(-19 * time.Minute).UnixNano(), Agent: msg.Agent{Name: "tide reader"},
		}
		if n > 0 {
			s.Parent = b.Spans[40].ID
			s.Tool = msg.Tool{Name: kind.String(), CallID: kind.String()}
		}
		if kind == msg.SpanDelegation {
			s.Delegate.To = "moon"
		}
		b.Spans = append(b.Spans, new(s))
		if n > 0 {
			b.Verdicts = append(b.Verdicts, msg.Verdict{
				Tenant: "default", Source: "tap", Format: "agno", Session: "tides", Run: "now", TraceID: s.TraceID, Span: s.ID, Kind: kind, Agent: "tide reader", Tool: s.Tool.Name,
				Name: "tool_running", Evidence: kind.String() + " has run 20 min; its longest of 12 runs took 2 min", Since: s.Start, At: s.LastSeen, Ver: 1,
			})
		}
	}
	asks := new(*b.Spans[40])
	asks.TraceID, asks.ID = msg.NewTraceID("default", "agno", "tides", "asks"), msg.NewSpanID("default", "agno", "tides", msg.SpanRun, "asks")
	asks.Events = []msg.SpanEvent{{Time: asks.LastSeen, Name: msg.RunPause.String()}}
	b.Spans = append(b.Spans, asks)
	step := new(*b.Spans[0])
	step.Kind, step.Agent.Name, step.Model, step.FirstToken, step.Usage = msg.SpanWorkflow, "count the boats", "", 0, msg.Tokens{}
	step.TraceID, step.ID = msg.NewTraceID("default", "agno", "tides", "steps"), msg.NewSpanID("default", "agno", "tides", msg.SpanWorkflow, "steps")
	b.Spans = append(b.Spans, step)
	if err := x.Export(context.Background(), b); err != nil {
		return err
	}
	// A change needs more runs than these, and days of them.
	return x.StoreChanges(context.Background(), []clickhouse.ChangeRow{{
		Tenant: "default", Found: w.began.Add(-30 * time.Minute), At: w.began.Add(-2 * time.Hour), Kind: "agent", Agent: "tide reader", Metric: "duration", Test: "release",
		Since: []string{"model gull-9-preview"}, RunsBefore: 40, RunsAfter: 30, P50Before: 8000, P50After: 10000, P95Before: 9000, P95After: 12000, MeanBefore: 8100, MeanAfter: 10100,
		Ratio: 1.25, Low: 1.18, High: 1.33, Summary: "a run of tide reader takes 25 % longer, from 8.0 s to 10.0 s, since model gull-9-preview: 2.0 s more in the model", Version: 1,
	}})
}
