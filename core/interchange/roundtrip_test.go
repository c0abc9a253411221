package interchange_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/decoder/conformance"
	"github.com/earshot-dev/earshot/core/decoder/decodertest"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/interchange"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/plugins"
	"github.com/earshot-dev/earshot/plugins/atif"
)

// decoded returns the rows of a stream, by session.
func decoded(t *testing.T, f decoder.Factory, s decoder.Stream, frames []frame.Frame) map[string][]msg.Row {
	t.Helper()
	sessions := make(map[string][]msg.Row)
	for _, m := range msg.Fold(decodertest.Decode(t, f, s, frames).Messages) {
		r := m.Row()
		r.SessionID = cmp.Or(r.SessionID, m.Session)
		sessions[r.SessionID] = append(sessions[r.SessionID], r)
	}
	return sessions
}

// facts are the common part of a conversation and its trajectory: the parent of each run; its
// texts, calls and results in order; and tokens.
type facts struct {
	Parents map[string]string   // run and call, by run
	Texts   map[string][]string // by run
	Calls   map[string][]string // by run
	Results map[string]string   // by run and call; the last one
	Tokens  [5]uint64
}

func factsOf(rows []msg.Row) facts {
	f := facts{Parents: make(map[string]string), Texts: make(map[string][]string), Calls: make(map[string][]string), Results: make(map[string]string)}
	shown := make(map[string]bool) // runs that have something to export
	calls := make(map[string]string)
	delegates := make(map[string]bool) // calls of which the child run is known, though a later row may name it
	for i := range rows {
		if r := &rows[i]; r.ChildRunID != "" && r.ChildRunID != r.RunID {
			delegates[r.RunID+" "+r.ToolCallID] = true
		}
	}
	for i := range rows {
		r := &rows[i]
		tokens := [5]uint64{r.InputTokens, r.OutputTokens, r.CacheReadTokens, r.CacheWriteTokens, r.ReasoningTokens}
		for j, n := range tokens {
			f.Tokens[j] += n
		}
		shown[r.RunID] = shown[r.RunID] || tokens != [5]uint64{}
		switch r.Kind {
		case "user", "system", "error", "assistant":
			if r.Content != "" {
				shown[r.RunID] = true
				f.Texts[r.RunID] = append(f.Texts[r.RunID], r.Kind+" "+r.Content)
			}
		case "reasoning":
			shown[r.RunID] = true
		case "tool_call", "delegation":
			shown[r.RunID] = true
			if key := r.RunID + " " + r.ToolCallID; calls[key] == "" {
				calls[key] = r.RunID
				calls[" "+r.ToolCallID] = cmp.Or(calls[" "+r.ToolCallID], key)
				kind := r.Kind
				if delegates[key] {
					kind = "delegation"
				}
				f.Calls[r.RunID] = append(f.Calls[r.RunID], fmt.Sprint(kind, " ", r.ToolCallID, " ", r.ToolName, " ", arguments(r.ToolArguments), " ", r.DelegateTask))
			}
		}
	}
	for i := range rows {
		r := &rows[i]
		switch r.Kind {
		case "tool_result", "delegation_result":
			key := r.RunID + " " + r.ToolCallID
			if calls[key] == "" && calls[" "+r.ToolCallID] != "" {
				key = calls[" "+r.ToolCallID] // the run of the call
			} else {
				shown[r.RunID] = true
			}
			f.Results[key] = fmt.Sprint(r.IsError, " ", r.Content)
		}
		if r.ParentRunID != "" && r.ParentRunID != r.RunID {
			if f.Parents[r.RunID] == "" || f.Parents[r.RunID] == msg.UnknownRun {
				f.Parents[r.RunID] = r.ParentRunID
			}
			if c := r.Attributes["parent_call_id"]; c != "" && calls[r.ParentRunID+" "+c] != "" {
				f.Parents[r.RunID] = r.ParentRunID + " " + c
			}
		}
	}
	for i := range rows {
		r := &rows[i]
		if p := f.Parents[r.ChildRunID]; r.ChildRunID != "" && r.ChildRunID != r.RunID && calls[r.RunID+" "+r.ToolCallID] != "" && (p == "" || p == msg.UnknownRun || p == r.RunID) {
			f.Parents[r.ChildRunID] = r.RunID + " " + r.ToolCallID
		}
	}
	for run := range f.Parents {
		if !shown[run] {
			delete(f.Parents, run)
		}
	}
	return f
}

func arguments(s string) string {
	var b bytes.Buffer
	if s == "" {
		return "{}"
	}
	if json.Compact(&b, []byte(s)) != nil {
		return s
	}
	return b.String()
}

// TestATIFKeepsTheTree holds each case of each bundled decoder to the same runs, parents, texts, calls,
// results and tokens after a way through ATIF.
func TestATIFKeepsTheTree(t *testing.T) {
	formats := plugins.Bundled()
	for _, format := range slices.Sorted(maps.Keys(formats)) {
		cases, err := conformance.Load(os.DirFS(filepath.Join("..", "..", "plugins", format, "testdata")))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range cases {
			for session, rows := range decoded(t, formats[format](), c.Stream, c.Frames) {
				t.Run(format+"/"+c.Name, func(t *testing.T) { roundTrip(t, session, rows) })
			}
		}
	}
}

func roundTrip(t *testing.T, session string, rows []msg.Row) {
	doc := interchange.ATIF(rows, nil)
	want := factsOf(rows)
	if doc == nil {
		if len(want.Texts)+len(want.Calls)+len(want.Results) > 0 || want.Tokens != [5]uint64{} {
			t.Fatal("no document")
		}
		return
	}
	var text bytes.Buffer
	if err := interchange.Write(&text, doc); err != nil {
		t.Fatal(err)
	}
	valid(t, doc, map[string]bool{})
	again := decoded(t, atif.New(), decoder.Stream{Origin: "x.json"}, []frame.Frame{{Kind: frame.Body, Data: text.Bytes()}})
	if len(again) != 1 || again[session] == nil {
		t.Fatalf("%d sessions, and none is %q", len(again), session)
	}
	for i := range again[session] {
		if r := &again[session][i]; r.Kind == "unknown" || r.Attributes["unknown_fields"] != "" {
			t.Errorf("not read back: %s%s", r.Content, r.Attributes["unknown_fields"])
		}
	}
	got := factsOf(again[session])
	same(t, "parents", want.Parents, got.Parents)
	same(t, "texts", want.Texts, got.Texts)
	same(t, "calls", want.Calls, got.Calls)
	same(t, "results", want.Results, got.Results)
	same(t, "tokens", want.Tokens, got.Tokens)
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	w, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	g, err := json.MarshalIndent(got, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(w, g) {
		t.Errorf("%s: want %s, got %s", what, w, g)
	}
}

// valid holds a trajectory to the rules of ATIF.
func valid(t *testing.T, doc *interchange.Trajectory, ids map[string]bool) {
	t.Helper()
	if doc.SchemaVersion != "ATIF-v1.7" || doc.Agent.Name == "" || doc.Agent.Version == "" || len(doc.Steps) == 0 {
		t.Errorf("trajectory %q lacks what it must have", doc.TrajectoryID)
	}
	embedded := make(map[string]bool)
	for _, sub := range doc.Subagents {
		if sub.TrajectoryID == "" || ids[sub.TrajectoryID] {
			t.Errorf("trajectory id %q is empty or not unique", sub.TrajectoryID)
		}
		ids[sub.TrajectoryID], embedded[sub.TrajectoryID] = true, true
		valid(t, sub, ids)
	}
	for i, s := range doc.Steps {
		if s.StepID != i+1 || !slices.Contains([]string{"system", "user", "agent"}, s.Source) {
			t.Errorf("step %d: id %d, source %q", i, s.StepID, s.Source)
		}
		if s.Source != "agent" && (s.ModelName != "" || s.Reasoning != "" || s.ToolCalls != nil || s.Metrics != nil) {
			t.Errorf("step %d has what only a step of the agent has", i)
		}
		calls := make(map[string]bool)
		for _, c := range s.ToolCalls {
			var o map[string]any
			if json.Unmarshal(c.Arguments, &o) != nil || c.Name == "" || c.ID == "" || calls[c.ID] {
				t.Errorf("step %d: call %q of %q", i, c.ID, c.Name)
			}
			calls[c.ID] = true
		}
		if s.Observation == nil {
			continue
		}
		for _, r := range s.Observation.Results {
			if r.CallID != nil && !calls[*r.CallID] {
				t.Errorf("step %d: a result of %q, which is no call of the step", i, *r.CallID)
			}
			for _, ref := range r.Refs {
				if !embedded[ref.TrajectoryID] {
					t.Errorf("step %d refers to %q, which is not embedded", i, ref.TrajectoryID)
				}
			}
		}
	}
}
