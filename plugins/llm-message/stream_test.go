package llmmessage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// stateful is a decoder as the host has it.
type stateful interface {
	decoder.Decoder
	decoder.Snapshotter
}

func newStream(t testing.TB, options string) stateful {
	t.Helper()
	d, err := New().New(decoder.Stream{Origin: "/var/log/lerrin.jsonl", Options: json.RawMessage(options)})
	if err != nil {
		t.Fatal(err)
	}
	return d.(stateful)
}

func decode(t testing.TB, d decoder.Decoder, kind frame.Kind, data string) []msg.Message {
	t.Helper()
	var out decoder.Output
	if err := d.Decode(&frame.Frame{Kind: kind, Data: []byte(data)}, &out); err != nil {
		t.Fatal(err)
	}
	return out.Messages
}

func TestOptions(t *testing.T) {
	for options, want := range map[string]string{
		`{"timezone":"Local"}`:      "Local",
		`{"timezone":"Atlantis/X"}`: "timezone",
		`{"timezone":7}`:            "timezone",
		`{"zone":"UTC"}`:            `"zone"`,
		`[]`:                        "options",
	} {
		if _, err := New().New(decoder.Stream{Options: json.RawMessage(options)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", options, err, want)
		}
	}
}

// TestZone: times without a zone are in that of the option, in winter and in summer;
// others, and those of the calls of the model, are not.
func TestZone(t *testing.T) {
	for _, c := range []struct{ options, given, want string }{
		{``, "2026-03-02T10:00:00.000001", "2026-03-02T10:00:00.000001Z"},
		{`{"timezone":"Europe/Berlin"}`, "2026-03-02T10:00:00", "2026-03-02T09:00:00Z"},
		{`{"timezone":"Europe/Berlin"}`, "2026-07-02T10:00:00", "2026-07-02T08:00:00Z"},
		{`{"timezone":"+05:30"}`, "2026-03-02T10:00:00", "2026-03-02T04:30:00Z"},
		{`{"timezone":"+05:30"}`, "2026-03-02T10:00:00Z", "2026-03-02T10:00:00Z"},
		{`{"timezone":"+05:30"}`, "2026-03-02T10:00:00-01:00", "2026-03-02T11:00:00Z"},
	} {
		out := decode(t, newStream(t, c.options), frame.Text, `{"event":"agent.thinking","timestamp":"`+c.given+`","content":"x"}`)
		if got := time.Unix(0, out[0].Time).UTC().Format(time.RFC3339Nano); got != c.want {
			t.Errorf("%s %s: got %s, want %s", c.options, c.given, got, c.want)
		}
	}
}

func TestSessionOfOrigin(t *testing.T) {
	for origin, want := range map[string]string{
		"": "unknown", "/a/lerrin.jsonl": "lerrin", `C:\a\lerrin.json.1`: "lerrin", "ws://h:1/chat": "chat",
	} {
		if got := sessionOfOrigin(origin); got != want {
			t.Errorf("%q: got %q, want %q", origin, got, want)
		}
	}
}

func TestRestoreRefusesOtherVersions(t *testing.T) {
	for _, s := range []string{`{`, `{"Version":0}`, `{"Version":99}`, `{"Version":1}`, `{"Version":2,"Sessions":[null]}`} {
		if err := newStream(t, "").Restore([]byte(s)); err == nil {
			t.Errorf("%s is taken", s)
		}
	}
}

func TestRewritten(t *testing.T) {
	var doc jsonv.Doc
	for content, want := range map[string]string{
		`"Question: a\n\nGuide: g"`:                      "a|g",
		`"Question: a\n\nGuide: b\n\nGuide: g"`:          `a\n\nGuide: b|g`, // the agent's is the last
		`"Question: say \\n\n\nGuide: g"`:                `say \\n|g`,
		`"Question: what does \\n\\n\\nGuide: g mean?"`:  "",
		`"Question: a"`:                                  "",
		`"question: a\n\nGuide: g"`:                      "",
		`"a Question: a\n\nGuide: g"`:                    "",
		`{"Question":"a"}`:                               "",
		`"Question: \u00e4\n\nGuide: "`:                  `\u00e4|`,
		`"Question: ends in a backslash \\\n\nGuide: g"`: `ends in a backslash \\|g`,
	} {
		if err := doc.Parse([]byte(content)); err != nil {
			t.Fatal(err)
		}
		got := ""
		if question, guide, ok := splitGuide(doc.Root()); ok {
			got = string(question) + "|" + string(guide)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", content, got, want)
		}
	}
}

// TestObserved: the result of a tool is the same in an event and in a memory.
func TestObserved(t *testing.T) {
	var doc jsonv.Doc
	for content, want := range map[string]string{
		"\"Observed output of cmd `a` executed:\\nx\\ny\"":         "x\ny",
		"\"Observed output of cmd `a` executed:\\nError: broken\"": "failed: broken",
		"\"Cmd `a` completed with no output\"":                     "",
		`"Error: Unknown tool 'a'"`:                                "failed: Unknown tool 'a'",
		`"plain"`:                                                  "plain",
		`{"a":1}`:                                                  `{"a":1}`,
		`null`:                                                     "",
	} {
		if err := doc.Parse([]byte(content)); err != nil {
			t.Fatal(err)
		}
		text, failed := observed(doc.Root())
		got := text.String()
		if failed {
			got = "failed: " + got
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", content, got, want)
		}
	}
}

// TestCanonical: the arguments of a call are the same however they are written.
func TestCanonical(t *testing.T) {
	base := func(args string) string {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(args)); err != nil {
			t.Fatal(err)
		}
		_, signature := arguments("x", doc.Root())
		return signature
	}
	for _, same := range [][2]string{
		{`{"a":1,"b":[true,null]}`, `"{\"b\": [true, null], \"a\": 1.0}"`},
		{`{}`, `""`}, {`{}`, `null`}, {`{}`, `"{}"`},
		{`{"a":"\u00e4"}`, `"{\"a\":\"ä\"}"`},
		{`{"a":2}`, `{"a":1,"a":2}`},
	} {
		if base(same[0]) != base(same[1]) {
			t.Errorf("%s and %s are different", same[0], same[1])
		}
	}
	for _, other := range [][2]string{
		{`{"a":1}`, `{"a":"1"}`}, {`{"a":[1,2]}`, `{"a":[2,1]}`}, {`{"a":{}}`, `{"a":[]}`}, {`"{broken"`, `"{broken too"`}, {`{"a":null}`, `{}`},
	} {
		if base(other[0]) == base(other[1]) {
			t.Errorf("%s and %s are the same", other[0], other[1])
		}
	}
}

// TestImages: an image has a size, a hash and the type of its bytes.
func TestImages(t *testing.T) {
	var doc jsonv.Doc
	for content, want := range map[string]string{
		`"iVBORw0KGgo="`:                        "image/png 8 true",
		`"data:image/jpeg;base64,iVBORw0KGgo="`: "image/png 8 true", // the bytes are right
		`"\/9j\/4A=="`:                          "image/jpeg 4 true",
		`"UklGRgAAAABXRUJQ"`:                    "image/webp 12 true",
		`"AAAA"`:                                "application/octet-stream 3 true",
		`"AAAA!"`:                               "application/octet-stream 3 false",
	} {
		if err := doc.Parse([]byte(content)); err != nil {
			t.Fatal(err)
		}
		list := imageOf(doc.Root())
		if len(list) != 1 {
			t.Errorf("%s: %d attachments", content, len(list))
			continue
		}
		if got := fmt.Sprint(list[0].MediaType, " ", list[0].Size, " ", list[0].SHA256 != ""); got != want {
			t.Errorf("%s: got %s, want %s", content, got, want)
		}
	}
}

// TestManyOpen: ten thousand calls, sessions, drafts and pieces of work that never
// end leave no more than the limits allow.
func TestManyOpen(t *testing.T) {
	d := newStream(t, "")
	var out decoder.Output
	feed := func(format string, args ...any) {
		out.Reset()
		f := frame.Frame{Kind: frame.Text, Data: fmt.Appendf(nil, format, args...)}
		if err := d.Decode(&f, &out); err != nil || len(out.Problems) > 0 {
			t.Fatal(err, out.Problems)
		}
	}
	long := strings.Repeat("x", 1<<10)
	size := func() int {
		b, err := d.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		return len(b)
	}
	var half int
	for i := range 10000 {
		feed(`{"event":"agent.tool_call","session_id":"a","event_id":"c%d","step_id":"step_%d_t","metadata":{"tool":"t","args":{"n":%d}}}`, i, i*2, i)
		feed(`{"event":"solver.start","session_id":"a","event_id":"s%d","content":{"task":{"id":%d,"title":"%s"}}}`, i, i, long)
		feed(`{"event":"agent.partial_answer","session_id":"a","event_id":"p%d","content":"%s"}`, i, long)
		feed(`{"event":"agent.user_confirm","session_id":"a","event_id":"w%d","step_id":"w%d"}`, i, i)
		feed(`{"event":"agent.thinking","session_id":"s%d","event_id":"t%d","content":"x"}`, i, i)
		feed(`{"event":"agent.llm_message","session_id":"a","event_id":"m%d","content":{"messages":[{"role":"user","content":"Question: %d\n\nGuide: %d"},{"role":"assistant","tool_calls":[{"id":"i%d","function":{"name":"t","arguments":"{}"}}]}]},"metadata":{"agent_name":"a%d"}}`, i, i, i, i, i)
		if i == 4999 {
			half = size()
		}
	}
	if full := size(); full > half+half/10 {
		t.Errorf("the state grows: %d bytes, then %d", half, full)
	}
}

// TestLongMemory: of a memory that is longer than the limit the appended messages are emitted,
// and none again.
func TestLongMemory(t *testing.T) {
	d := newStream(t, "")
	var b bytes.Buffer
	b.WriteString(`[{"role":"user","content":"start"}`)
	add := func(from, to int) string {
		for i := from; i < to; i++ {
			fmt.Fprintf(&b, `,{"role":"assistant","content":"line %d"}`, i)
		}
		return b.String() + "]"
	}
	if n := len(decode(t, d, frame.Body, add(0, 3*maxItems))); n != 3*maxItems+1 {
		t.Errorf("%d messages", n)
	}
	if n := len(decode(t, d, frame.Body, add(3*maxItems, 3*maxItems+2))); n != 2 {
		t.Errorf("%d new messages, want 2", n)
	}
}

// TestResentEventsAreNotMissing: an event that a restored connection sends again under a new number has arrived; the
// answer has no hole for it.
func TestResentEventsAreNotMissing(t *testing.T) {
	d := newStream(t, "")
	var all []msg.Message
	for _, e := range []string{
		`{"event":"agent.partial_answer","session_id":"s","timestamp":"2026-03-02T10:00:01","content":"At ","metadata":{"connection_id":"a"},"seq":1,"event_id":"a-1"}`,
		`{"event":"agent.thinking","session_id":"s","timestamp":"2026-03-02T10:00:02","content":"x","metadata":{"connection_id":"a"},"seq":2,"event_id":"a-2"}`,
		`{"event":"system.connected","timestamp":"2026-03-02T10:00:03","content":"c","metadata":{"connection_id":"b"},"seq":1,"event_id":"b-1"}`,
		`{"event":"agent.thinking","session_id":"s","timestamp":"2026-03-02T10:00:02","content":"x","metadata":{"connection_id":"b","orig_event_id":"a-2"},"seq":2,"event_id":"b-2"}`,
		`{"event":"agent.final_answer","session_id":"s","timestamp":"2026-03-02T10:00:04","content":"At noon.","metadata":{"connection_id":"b"},"seq":3,"event_id":"b-3"}`,
	} {
		all = append(all, decode(t, d, frame.Text, e)...)
	}
	for _, m := range msg.Fold(all) {
		if n := m.Attr("holes"); n != "" {
			t.Errorf("%s %s: %s holes", m.Kind, m.Key, n)
		}
	}
}
