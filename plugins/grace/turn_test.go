package grace

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// ends are the runs that end, with their reasons.
func ends(messages []msg.Message) map[string]string {
	out := make(map[string]string)
	for _, m := range messages {
		if m.Signal == msg.RunEnd {
			out[m.Run] = m.FinishReason
		}
	}
	return out
}

// TestPlanBeginsTheNextTurn: where no question is between two turns, and no reply at the beginning of the second one, its
// plan is.
func TestPlanBeginsTheNextTurn(t *testing.T) {
	got := decodeFrames(t, lines(
		rowAt("assistant", "auto_reply", "success", "", 0, "On it.", ""),
		rowAt("assistant", "finish_summery", "success", "", 1, "Done.", ""),
		rowAt("assistant", "plan", "success", "", 10, "", planOfTwo),
		tool("running", "u1", taskA, 12, "lead.sh"), tool("success", "u1", taskA, 15, "12 m"),
		rowAt("assistant", "task", "completed", taskA, 16, "Sounded", "{}"),
		rowAt("assistant", "finish_summery", "success", "", 17, "Done again.", ""),
	))
	const first, second = "turn-1772445600000", "turn-1772445610000"
	if d := cmp.Diff(map[string]string{first: "stop", second: "stop", second + "/" + taskA: "completed"}, ends(got)); d != "" {
		t.Errorf("the runs end so (-want +got):\n%s", d)
	}
}

// TestConversationIsNoTask: a message about the whole run that names the conversation belongs to the turn and ends it,
// whether the conversation is known from before or not.
func TestConversationIsNoTask(t *testing.T) {
	const turn = "turn-1772445600000"
	for action, want := range map[string]string{"finish_summery": "stop", "stop": "interrupted", "error": "error"} {
		for _, names := range []string{"", "harbour"} { // the conversation, in the first message
			frames := lines(rowAt("assistant", "auto_reply", "success", names, 0, "On it.", ""), rowAt("assistant", action, "success", "harbour", 7, "Over.", ""))
			if d := cmp.Diff(map[string]string{turn: want}, ends(decodeFrames(t, frames))); d != "" {
				t.Errorf("%s, with %q before: the runs end so (-want +got):\n%s", action, names, d)
			}
		}
	}
}

// TestConversationsInOneList: rows of two conversations that take turns have the messages of each conversation alone.
func TestConversationsInOneList(t *testing.T) {
	conversation := func(id string, second int) (rows []string) {
		for i, m := range []string{
			rowAt("user", "question", "success", id, second, "Sound the bay of "+id, ""),
			rowAt("assistant", "auto_reply", "success", "", second+1, "On it.", ""),
			rowAt("assistant", "plan", "success", "", second+2, "", planOfTwo),
			tool("running", "u-"+id, taskA, second+3, "lead.sh"), tool("success", "u-"+id, taskA, second+4, "12 m"),
			rowAt("assistant", "task", "completed", taskA, second+5, "Sounded", "{}"),
			rowAt("assistant", "finish_summery", "success", "", second+6, "Done.", ""),
		} {
			rows = append(rows, strings.Replace(m, `{"role"`, fmt.Sprintf(`{"id":%d,"conversation_id":%q,"role"`, 10*i+second, id), 1))
		}
		return rows
	}
	list := func(rows []string) []frame.Frame {
		return []frame.Frame{{Kind: frame.Body, Data: []byte(`{"data":[` + strings.Join(rows, ",") + `]}`)}}
	}
	log := func(rows []string) (out []frame.Frame) {
		for _, r := range rows {
			out = append(out, frame.Frame{Kind: frame.Line, Data: []byte(r)})
		}
		return out
	}
	a, b := conversation("lerrin", 0), conversation("harbour", 1)
	var mixed []string
	for i := range a {
		mixed = append(mixed, a[i], b[i])
	}
	for name, form := range map[string]func([]string) []frame.Frame{"list": list, "log": log} {
		both := decodeFrames(t, form(mixed))
		for id, rows := range map[string][]string{"lerrin": a, "harbour": b} {
			var got []msg.Message
			for _, m := range both {
				if m.Session == id {
					got = append(got, m)
				}
			}
			if d := cmp.Diff(rowsOf(t, decodeFrames(t, form(rows))), rowsOf(t, got)); d != "" {
				t.Errorf("%s: conversation %s (-alone +with another):\n%s", name, id, d)
			}
		}
	}
}

// TestEvictedConversationKeepsItsQuestion: of many conversations in one log each question is emitted, in its own, and
// the state is that of the last ones.
func TestEvictedConversationKeepsItsQuestion(t *testing.T) {
	const conversations = 4 * maxOthers
	d, asked, size := newStream(t, "x.jsonl"), make(map[string]string), 0
	var out decoder.Output
	for i := range conversations {
		id := fmt.Sprintf("c%03d", i)
		row := strings.Replace(rowAt("user", "question", "success", id, i, "Sound "+id, ""), `{"role"`, fmt.Sprintf(`{"conversation_id":%q,"role"`, id), 1)
		if err := d.Decode(&frame.Frame{Kind: frame.Line, Data: []byte(row)}, &out); err != nil {
			t.Fatal(err)
		}
		if i == conversations/2 {
			size = snapshotSize(t, d)
		}
	}
	if n := snapshotSize(t, d); n > size+size/10 {
		t.Errorf("a snapshot of %d bytes, %d before", n, size)
	}
	if err := d.Flush(&out); err != nil {
		t.Fatal(err)
	}
	for _, m := range out.Messages {
		asked[m.Session] += m.Content.String()
	}
	for i := range conversations {
		if id := fmt.Sprintf("c%03d", i); asked[id] != "Sound "+id {
			t.Errorf("conversation %s has the question %q", id, asked[id])
		}
	}
}
