package claude

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
)

// format is the smallest one: a record names its session and its sub-agent.
type format struct {
	State
	line Line
	doc  jsonv.Doc
}

func newFormat() *format {
	f := new(format)
	f.line = Line{State: &f.State, Form: f}
	return f
}

func (*format) Facts() []string                     { return []string{"type", "message"} }
func (*format) Cause(ln *Line, _ bool) string       { return ln.ID() }
func (*format) Started(*Line, *msg.Message)         {}
func (*format) Finishing(*Line, *Lane)              {}
func (*format) Notice(ln *Line, _ jsonv.Value)      { ln.Status(ln.ID(), "notice") }
func (*format) Interrupted(ln *Line, _ jsonv.Value) { ln.Status(ln.ID(), "interrupt") }
func (*format) Launched(*Line, jsonv.Value, *Call)  {}
func (f *format) lane(session, agent string) (l *Lane) {
	if l = f.Lane(func(l *Lane) bool { return l.Session == session && l.Agent == agent }); l == nil {
		l = &Lane{Session: session, Agent: agent}
		if agent != "" {
			l.Run = conversation.Run{ID: agent, Child: true}
		}
		f.AddLane(&f.line, l)
	}
	return l
}

// decode decodes records and returns their messages, without aliases of the records.
func (f *format) decode(t *testing.T, records ...string) []msg.Message {
	t.Helper()
	var out decoder.Output
	for _, record := range records {
		if err := f.doc.Parse([]byte(record)); err != nil {
			t.Fatalf("%s: %v", record, err)
		}
		root, ln := f.doc.Root(), &f.line
		ln.Reset(root, &out)
		ln.Name = f.SessionOf(root.Get("session"), "s")
		if ln.Lane = f.lane(ln.Name, ident.Of(root.Get("agent"))); ln.Lane.Active() {
			ln.Run = ln.Lane.ID
		}
		if root.Get("type").Equal("assistant") {
			ln.Assistant()
		} else {
			ln.User()
		}
		for i := range out.Messages {
			out.Messages[i].Content = out.Messages[i].Content.Own()
		}
	}
	for i := range out.Messages {
		if err := out.Messages[i].Validate(); err != nil {
			t.Error(err)
		}
	}
	return out.Messages
}

// assistant is a record of the response with that id: one block, and the usage so far.
func assistant(uuid, id, block string, input, output int) string {
	return fmt.Sprintf(`{"type":"assistant","uuid":%q,"message":{"id":%q,"model":"claude-x","content":[%s],"usage":{"input_tokens":%d,"output_tokens":%d}}}`, uuid, id, block, input, output)
}

func user(uuid, content string) string {
	return fmt.Sprintf(`{"type":"user","uuid":%q,"message":{"content":%s}}`, uuid, content)
}

func usages(messages []msg.Message) (out []string) {
	for _, m := range messages {
		if m.Kind == msg.Usage {
			out = append(out, fmt.Sprintf("%s %d+%d %s after %s", m.Key, m.Usage.Input, m.Usage.Output, m.Complete, m.ParentKey))
		}
	}
	return out
}

// TestUsageOnce: the tokens of a response are emitted when it has ended, with the counts
// of the record that has the highest output, the last one of those. Records that are repeated, or come after its end, add none.
func TestUsageOnce(t *testing.T) {
	f := newFormat()
	first := []string{
		user("u0", `"Sail."`), assistant("a1", "m1", `{"type":"thinking","thinking":"?"}`, 9, 1), assistant("a2", "m1", `{"type":"text","text":"Aye."}`, 2, 30),
		assistant("a2", "m1", `{"type":"text","text":"Aye."}`, 2, 30), assistant("a3", "m1", `{"type":"tool_use","id":"c1","name":"Read","input":{}}`, 4, 3),
		user("u1", `[{"type":"tool_result","tool_use_id":"c1","content":"log"}]`),
	}
	if got := usages(f.decode(t, first...)); got != nil {
		t.Errorf("before the end of the response: %q", got)
	}
	var open decoder.Output
	f.Flush(&open)
	if d := cmp.Diff([]string{"usage:m1 2+30 partial after call:c1"}, usages(open.Messages)); d != "" {
		t.Errorf("open (-want +got):\n%s", d)
	}
	got := f.decode(t, assistant("a4", "m2", `{"type":"text","text":"Done."}`, 1, 1), assistant("a5", "m1", `{"type":"text","text":"late"}`, 99, 99), user("u2", `"Thanks."`))
	want := []string{"usage:m1 2+30 complete after call:c1", "usage:m2 1+1 complete after m2/text"}
	if d := cmp.Diff(want, usages(got)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if rest := usages(f.decode(t, first[1:5]...)); rest != nil {
		t.Errorf("the response again: %q", rest)
	}
}

// TestPrompts: a user record begins a run unless it is one of those that no person wrote.
func TestPrompts(t *testing.T) {
	for name, c := range map[string]struct {
		record string
		prompt bool
	}{
		"text":              {user("u", `"Sail."`), true},
		"blocks":            {user("u", `[{"type":"text","text":"Sail."}]`), true},
		"command":           {user("u", `"<command-message>sail</command-message>\n<command-name>/sail</command-name>"`), true},
		"picture":           {user("u", `[{"type":"image","source":{"type":"url","url":"http://h/a.png"}}]`), true},
		"result":            {user("u", `[{"type":"tool_result","tool_use_id":"c","content":"x"},{"type":"text","text":"beside"}]`), false},
		"meta":              {`{"type":"user","uuid":"u","isMeta":true,"message":{"content":"injected"}}`, false},
		"synthetic":         {`{"type":"user","uuid":"u","isSynthetic":true,"message":{"content":"injected"}}`, false},
		"summary":           {`{"type":"user","uuid":"u","isCompactSummary":true,"message":{"content":"so far"}}`, false},
		"local command":     {user("u", `"<command-name>/cost</command-name>"`), false},
		"output of one":     {user("u", `"<local-command-stdout>3</local-command-stdout>"`), false},
		"notice":            {user("u", `"<task-notification><task-id>t</task-id></task-notification>"`), false},
		"interrupt":         {user("u", `[{"type":"text","text":"[Request interrupted by user]"}]`), false},
		"agent by origin":   {`{"type":"user","uuid":"u","origin":{"kind":"peer","name":"ada"},"message":{"content":"Sail."}}`, false},
		"agent by its text": {user("u", `"<teammate-message teammate_id=\"ada\">Sail.</teammate-message>"`), false},
		"task of a child":   {`{"type":"user","uuid":"u","agent":"kid","message":{"content":"Sail."}}`, false},
	} {
		got := newFormat().decode(t, c.record)
		if len(got) == 0 {
			t.Errorf("%s: no message", name)
		}
		prompts := 0
		for _, m := range got {
			if m.Kind == msg.User && m.Agent.Kind == msg.KindHuman && m.Signal == msg.RunStart {
				prompts++
			}
		}
		if (prompts == 1) != c.prompt {
			t.Errorf("%s: %d prompts in %+v", name, prompts, got)
		}
	}
}

// TestAnswersAreWords: an answer of a sub-agent of Claude Code is one in any words; Qwen Code has words alone for work that began.
func TestAnswersAreWords(t *testing.T) {
	for fork, want := range map[string]msg.Kind{"": msg.DelegationResult, QwenCode: msg.Status} {
		f := newFormat()
		f.lane("s", "").Fork = fork
		got := f.decode(t,
			assistant("a1", "m1", `{"type":"tool_use","id":"c1","name":"Agent","input":{"prompt":"look"}}`, 1, 1),
			user("u1", `[{"type":"tool_result","tool_use_id":"c1","content":"Background agent launched successfully."}]`))
		if last := got[len(got)-1]; last.Kind != want || last.Tool.CallID != "c1" {
			t.Errorf("%q: %v", fork, last.Kind)
		}
	}
}

// TestKeys: keys are made of the ids of the protocol. Two requests may share a message id.
func TestKeys(t *testing.T) {
	var got []string
	for _, m := range newFormat().decode(t,
		user("u0", `[{"type":"text","text":"one"},{"type":"text","text":"two"}]`),
		assistant("a1", "m1", `{"type":"thinking","thinking":"?"},{"type":"text","text":"a"},{"type":"text","text":"b"}`, 1, 1),
		assistant("a2", "m1", `{"type":"tool_use","id":"c1","name":"Read","input":{}}`, 1, 1),
		assistant("a1", "m1", `{"type":"thinking","thinking":"?"}`, 1, 1), // repeated
		user("u1", `[{"type":"tool_result","tool_use_id":"c1","content":"x"}]`),
		`{"type":"assistant","uuid":"a3","requestId":"r1","message":{"id":"1","content":[{"type":"text","text":"x"}],"usage":{"input_tokens":1}}}`,
		`{"type":"assistant","uuid":"a4","requestId":"r2","message":{"id":"1","content":[{"type":"text","text":"y"}],"usage":{"input_tokens":1}}}`,
		user("u2", `"<command-name>/cost</command-name>"`), user("u3", `"again"`), // while it answers
		assistant("a5", "m2", `{"type":"text","text":"z"}`, 1, 1),
	) {
		got = append(got, m.Key)
	}
	want := []string{"u0", "u0/1", "m1/thinking", "m1/text", "m1/text/1", "call:c1", "result:c1", "usage:m1", "1/text", "usage:1", "1:r2/text", "u2", "u3", "usage:1:r2", "m2/text"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestStateIsBounded: conversations, calls, responses and ids are bounded, and a conversation
// that is evicted emits its tokens.
func TestStateIsBounded(t *testing.T) {
	f, tokens, many := newFormat(), uint64(0), max(2*maxLanes, conversation.MaxCalls+10)
	long := strings.Repeat("x", 2*ident.Max)
	for i := range many {
		record := assistant(fmt.Sprint("a", i), fmt.Sprint("m", i, long), fmt.Sprintf(`{"type":"tool_use","id":"c%d%s","name":"Read","input":{}}`, i, long), 1, 0)
		for _, where := range []string{fmt.Sprintf(`{"agent":"kid%d%s",`, i, long), fmt.Sprintf(`{"session":"s%d",`, i), `{`} {
			for _, m := range f.decode(t, where+strings.ReplaceAll(record[1:], `"id":"m`, fmt.Sprintf(`"id":"m%d`, len(where)))) {
				tokens += m.Usage.Input
				if len(m.Key) > ident.Max+len("thinking/") || len(m.Tool.CallID) > ident.Max {
					t.Fatalf("key %d bytes, call %d", len(m.Key), len(m.Tool.CallID))
				}
			}
		}
	}
	if n, c, r := len(f.Lanes), len(f.Calls.Open), len(f.Recent); n > maxLanes || c > conversation.MaxCalls || r > maxRecent {
		t.Errorf("%d conversations, %d calls, %d responses", n, c, r)
	}
	var out decoder.Output
	for _, l := range f.Lanes {
		f.line.Out = &out
		f.Finish(&f.line, l)
	}
	for _, m := range out.Messages {
		tokens += m.Usage.Input
	}
	if tokens != uint64(3*many) {
		t.Errorf("%d tokens of %d", tokens, 3*many)
	}
}

// TestErrorType: the CLI's own words at the beginning of a result are why a call was not made or was stopped; those that a command
// printed are its error.
func TestErrorType(t *testing.T) {
	for result, want := range map[string]string{
		"The user doesn't want to proceed with this tool use.":                     "denied",
		"Error: Permission to use Bash has been denied.":                           "denied",
		"Permission for this action has been denied. Reason: it pushes to main.":   "denied",
		"<tool_use_error>Cancelled: parallel tool call Bash(ls) errored":           "cancelled",
		"<tool_use_error>Sibling tool call errored</tool_use_error>":               "cancelled",
		"[Request interrupted by user for tool use]":                               "interrupted",
		"Exit code 1\nerror: job Cancelled: no quota":                              "tool_error",
		"Exit code 1\nError: The user doesn't want to be found":                    "tool_error",
		"Exit code 143\nCommand timed out after 2m 0s":                             "timeout",
		"<tool_use_error>InputValidationError: Read failed due to the following":   "validation",
		"<tool_use_error>Error: No such tool available: Prune</tool_use_error>":    "not_found",
		"Exit code 1\nPermission to use Docker is missing: ask your administrator": "tool_error",
	} {
		if got := ErrorType(result); got != want {
			t.Errorf("%q is %s, want %s", result, got, want)
		}
	}
}
