package codex

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/ident"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
	"github.com/earshot-dev/earshot/core/sdk/record"
)

// TestRunStarts: the first message of a run starts it, with the parent or with the id by
// which a caller in another format is linked. An unknown record starts none.
func TestRunStarts(t *testing.T) {
	for name, c := range map[string]struct {
		state State
		want  string
	}{
		"a thread":              {State{ID: "t"}, "run_start codex  t codex:t "},
		"begun by a person":     {State{ID: "t", Manual: true}, "run_start codex  t  "},
		"a child":               {State{ID: "t", Session: "s", Parent: "s", Child: true, Name: "Ada"}, "run_start Ada ? s  "},
		"the child of a child":  {State{ID: "t", Session: "s", Parent: "p", Child: true}, "run_start  p s  parent_run"},
		"a thread without name": {State{}, "run_start codex  file  "},
	} {
		var out decoder.Output
		d := Thread{State: &c.state, Current: &record.Current{Origin: "file", Out: &out}}
		d.Run = "r"
		d.Unknown("hash", "", jsonv.Value{})
		d.AddTo("other", msg.Status, "a")
		d.Add(msg.Status, "b")
		d.Add(msg.Status, "c")
		for i, m := range out.Messages {
			got := fmt.Sprintf("%s %s %s %s %s %s", m.Signal, m.Agent.Name, m.ParentRun, m.Session, m.Delegation.CorrelationID, m.Delegation.Link)
			if i == 2 && got != c.want || i != 2 && m.Signal != msg.NoSignal {
				t.Errorf("%s: message %d: %q, want %q", name, i, got, c.want)
			}
		}
	}
}

// TestAnswerOnce: the answer of an agent is the result of the call that began it, once.
func TestAnswerOnce(t *testing.T) {
	var got []string
	for _, state := range []string{"completed", "errored", "shutdown", "not_found", "interrupted"} {
		var out decoder.Output
		d := Thread{State: &State{ID: "t", Run: "r", Started: "r"}, Current: &record.Current{Out: &out}}
		c := d.NewCall("c", "spawn_agent")
		c.Spawn, c.Delegation, c.To = true, true, "scout"
		d.Calls.Add(c)
		d.Link(c, "child", "/root/scout", "ack:c", "spawned")
		if d.Answer("", state, msg.Plain("no")) != nil || d.Answer("stranger", state, msg.Plain("no")) != nil {
			t.Error("an answer of an unknown agent")
		}
		if d.Answer("/root/scout", state, msg.Plain("seven")) != c || d.Answer("child", state, msg.Plain("eight")) != nil {
			t.Errorf("%s: not answered once", state)
		}
		for _, m := range out.Messages {
			got = append(got, fmt.Sprintf("%s %s %s %s %s", m.Key, m.Delegation.ChildRun, m.Delegation.To, m.Content, m.Tool.ErrorType))
		}
	}
	var want []string
	for _, class := range []string{"", "tool_error", "cancelled", "not_found", "interrupted"} {
		want = append(want, "ack:c child   ", "result:c child scout seven "+class)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestGrow: a total that begins again counts whole, and the one from before, which follows a review or two, not once more.
func TestGrow(t *testing.T) {
	d := Thread{State: &State{}, Current: new(record.Current)}
	var got []uint64
	for _, n := range []uint64{100, 100, 250, 30, 40, 20, 250, 260, 10, 260, 300} {
		got = append(got, d.Grow(conversation.Counts{Input: n, Output: n}).Output)
	}
	if d := cmp.Diff([]uint64{100, 0, 150, 30, 10, 20, 0, 10, 10, 0, 40}, got); d != "" {
		t.Error(d)
	}
}

func TestFiles(t *testing.T) {
	long := "/srv/" + strings.Repeat("x", ident.Max) + "/a.txt"
	for _, in := range []string{
		`[{"path":"/srv/a b.txt","kind":"add"},{"path":"C:\\a\\b.txt","kind":"add"},{"path":"` + long + `","kind":"add","diff":"+1"},{"path":""}]`,
		`{"/srv/a b.txt":{"type":"add"},"C:\\a\\b.txt":{"type":"add"},"` + long + `":{"type":"add","content":"+1"},"":{},"x":7}`,
	} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(in)); err != nil {
			t.Fatal(err)
		}
		var out decoder.Output
		d := Thread{State: &State{}, Current: &record.Current{Out: &out}}
		d.Files("c", doc.Root())
		if len(out.Messages) != 3 {
			t.Fatalf("%d files of %s", len(out.Messages), in)
		}
		for i, path := range []string{"/srv/a b.txt", `C:\a\b.txt`, long} {
			m := &out.Messages[i]
			a := m.Attachments[0]
			if !strings.HasSuffix(path, a.URL) || len(a.URL) > ident.Max || !strings.HasSuffix(a.Name, ".txt") || strings.ContainsAny(a.Name, `/\`) {
				t.Errorf("%+v", a)
			}
			if len(m.Key) > ident.Max || m.Attr("change") != "add" {
				t.Errorf("a key of %d bytes, change %q", len(m.Key), m.Attr("change"))
			}
		}
		if out.Messages[2].Content.String() != "+1" {
			t.Error(out.Messages[2].Content)
		}
	}
}

// TestEnds: an error has its text and its class, which may have members of its own, and only a run that failed shows its end.
func TestEnds(t *testing.T) {
	var doc jsonv.Doc
	if err := doc.Parse([]byte(`{"message":"no route","codex_error_info":{"http_connection_failed":{"http_status_code":502}}}`)); err != nil {
		t.Fatal(err)
	}
	v := doc.Root()
	var out decoder.Output
	d := Thread{State: &State{ID: "t", Run: "r", Started: "r"}, Current: &record.Current{Out: &out}}
	d.Fault("error:1", v, false)
	d.Fault("error:2", v, true)
	d.Stop("r", "1", Failed, v)
	d.Stop("r", "2", Stopped, v)
	d.Stop("r", "3", "interrupted", v)
	var got []string
	for _, m := range out.Messages {
		got = append(got, fmt.Sprintf("%s %s %s hidden %t error %t %s %s %s", m.Key, m.Kind, m.Signal, m.Hidden, m.IsError, m.FinishReason, m.Content, m.Tool.ErrorType))
	}
	want := []string{
		"error:1 error  hidden false error true  no route http_connection_failed",
		"error:2 status retry hidden true error false  no route http_connection_failed",
		"stop:1 stop run_end hidden false error true error no route http_connection_failed",
		"stop:2 stop run_end hidden true error false stop  ",
		"stop:3 stop run_end hidden true error true interrupted  ",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestBelow: a sub-agent has one run, and is in the session that it names, else in that of its parent, which may lead the tree.
func TestBelow(t *testing.T) {
	for want, s := range map[string]State{"own": {ID: "t", Session: "own"}, "tree": {ID: "t"}, "parent": {ID: "t"}} {
		session := want
		if want == "parent" {
			session = ""
		}
		if s.Below("parent", session); s.Session != want || s.Run != "t" || s.Parent != "parent" || !s.Child {
			t.Errorf("%+v, want session %s", s, want)
		}
	}
}
