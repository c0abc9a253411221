package legion

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/earshot-dev/earshot/bench/gen"
	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// The decoder finds the messages that the generator counted: every message, every call,
// every token, every byte of text.
func TestFindsWhatTheGeneratorMeant(t *testing.T) {
	for name, o := range map[string]gen.Options{
		"clean":    {Sessions: 24, Bytes: 4e6, Seed: 1},
		"another":  {Sessions: 24, Bytes: 2e6, Seed: 2},
		"repeated": {Sessions: 12, Bytes: 1e6, Seed: 3, Repeated: 0.2},
		"broken":   {Sessions: 12, Bytes: 1e6, Seed: 4, Broken: 0.2},
		"all":      {Sessions: 12, Bytes: 1e6, Seed: 5, Broken: 0.1, Repeated: 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := gen.Legion(o)
			for n := range c.Sessions() {
				id, data, want := c.Session(n)
				if diff := cmp.Diff(want, audit(t, id, data), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("session %d %s: -meant +found:\n%s", n, id, diff)
				}
			}
		})
	}
}

// audit decodes a session as a sidecar would and counts the rows of the tables.
func audit(t *testing.T, id string, data []byte) (a gen.Account) {
	t.Helper()
	d := open(t, decoder.Stream{Origin: "sessions/" + id + "/messages.jsonl"})
	var all []msg.Message
	a.Bytes = int64(len(data))
	for line := range bytes.Lines(data) {
		line = bytes.TrimSuffix(line, []byte("\n"))
		a.Lines++
		if len(bytes.TrimSpace(line)) == 0 {
			a.Blank++
		}
		var out decoder.Output
		if err := d.Decode(&frame.Frame{Data: line}, &out); err != nil {
			t.Fatal(err)
		}
		a.Broken += len(out.Problems)
		all = append(all, out.Messages...)
	}
	all = append(all, flush(t, d)...)
	runs, calls, results := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range msg.Fold(all) {
		if m.Session != id {
			t.Fatalf("%s: session %s", m.Key, m.Session)
		}
		a.Message(m.Kind.String(), m.Content.Append(nil))
		a.Tokens(m.Usage.Input, m.Usage.Output, m.Usage.CacheRead, m.Usage.CacheWrite, m.Usage.Reasoning)
		if m.IsError {
			a.Errors++
		}
		if m.Run != "" {
			runs[m.Run] = true
		}
		switch m.Kind {
		case msg.Delegation:
			a.Delegations++
			calls[m.Tool.CallID] = true
		case msg.ToolCall:
			calls[m.Tool.CallID] = true
		case msg.ToolResult, msg.DelegationResult:
			results[m.Tool.CallID] = true
		}
	}
	a.Runs, a.ToolCalls = len(runs), len(calls)
	for id := range calls {
		if !results[id] {
			a.OpenCalls++
		}
	}
	return a
}
