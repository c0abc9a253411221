package truth

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
)

// format writes scenarios as its traffic.
type format struct {
	name    string
	variant string // of several forms of the format, the one that this is
	lens    lens
	write   func(s *Scenario) []Stream
}

// formats returns the writers.
func formats() []format {
	return []format{
		claudeCode(), claudeStream(), codex(), codexExec(), geminiCLI(), geminiPrinted(), pi("pi"), pi("openclaw"), legion(), openCode(), openCodeRows(), cline(), rooCode(), crush(), droid(), kimi(), kimiCode(),
		anthropic(), openAIChat(), openAIResponses(), gemini(), geminiLive(), ollama(), otel(), agUI(), agno(), mcp(),
		acp(), atif(), bedrock(), managedAgents(), vercelUI(), langGraph(),
		cursor(), cursorPrinted(), goose(), hermes(), copilot(), codexServer(),
		copilotOTel(), claudeOTel(), codexOTel(), geminiOTel(),
	}
}

// Recorded is a conversation in a format, with its truth.
type Recorded struct {
	Format, Name string
	Streams      []Stream
	Heard        bool // its times are those at which it was read
	Truth        *Conversation
}

// Written returns each scenario in each format that can express it.
func Written() (out []Recorded) {
	for _, f := range formats() {
		for _, s := range Scenarios() {
			if slices.ContainsFunc(s.needs(), func(n feature) bool { return !slices.Contains(f.lens.can, n) }) {
				continue
			}
			s.Format = f.name + f.variant
			name := strings.TrimSpace(f.variant + " " + s.Name)
			out = append(out, Recorded{Format: f.name, Name: name, Streams: f.write(&s), Heard: f.lens.heard, Truth: s.truth(&f.lens)})
		}
	}
	return out
}

type object = map[string]any

type list = []any

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // of values of this package
	}
	return b
}

func text(v any) string { return string(encode(v)) }

func stamp(seconds float64) string { return at(seconds).Format("2006-01-02T15:04:05.000Z") }

func millis(seconds float64) int64 { return at(seconds).UnixMilli() }

// id is a UUID of a format's own numbering.
func id(n int) string { return fmt.Sprintf("7a3c%04x-0000-4000-8000-0000000000aa", n) }

// session names the session of a scenario.
func (s *Scenario) session() string {
	n := 0
	for _, c := range s.Format + s.Name {
		n = (n*31 + int(c)) % 65536
	}
	return id(n)
}

// tape collects the frames of a stream, which may be written out of their order.
type tape struct {
	Stream
	twice bool
}

func (t *tape) add(seconds float64, f frame.Frame) {
	f.At = at(seconds).UnixNano()
	t.Frames = append(t.Frames, f)
}

func (t *tape) line(seconds float64, v any) {
	t.add(seconds, frame.Frame{Kind: frame.Line, Data: encode(v)})
}

func (t *tape) event(seconds float64, name string, v any) {
	t.add(seconds, frame.Frame{Kind: frame.Event, Name: name, Data: encode(v)})
}

// stream is the tape in the order of the times; all of it again if it is repeated.
func (t *tape) stream() Stream {
	slices.SortStableFunc(t.Frames, func(a, b frame.Frame) int { return cmp.Compare(a.At, b.At) })
	if t.twice {
		for _, f := range slices.Clone(t.Frames) {
			f.At += int64(10 * time.Minute)
			t.Frames = append(t.Frames, f)
		}
	}
	return t.Stream
}

func input(w *Work) object {
	if d := w.Delegate; d != nil {
		return object{"description": w.Argument, "prompt": d.Task, "subagent_type": d.Agent}
	}
	return object{"command": w.Argument}
}

// named is a lens's tool where delegations have a name of the format.
func named(delegation string) func(w *Work) string {
	return func(w *Work) string {
		if w.Delegate != nil {
			return delegation
		}
		return w.Name
	}
}

func toolName(w *Work, delegation string) string { return named(delegation)(w) }

func decode(b []byte, into any) {
	if err := json.Unmarshal(b, into); err != nil {
		panic(err) // of the output of encode
	}
}
