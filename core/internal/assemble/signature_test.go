package assemble

import (
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

func TestSignaturesOfArguments(t *testing.T) {
	var s signatures
	for raw, want := range map[string]string{
		`{}`: "", `{"z":0,"n":9}`: "n:number z:number", `{ "b" : 1, "a":"x\"y" }`: "a:string b:number", `{"o":{"x":[1,"]"]},"l":[],"t":true,"n":null,"f":-1.5e3}`: "f:number l:array n:null o:object t:bool",
		`{"path":"C:\\","more":"\\\""}`: "more:string path:string", ` {"a":1` + "\n}": "a:number",
		``: "", `"text"`: "", `[1]`: "", `{"a"}`: "", `{"a":}`: "", `{"a":1`: "", `{"a":"x`: "", `{"a":[`: "", `{"a":1,}`: "", `{"a":x}`: "", `{"a`: "",
		`{"` + strings.Repeat("k", 90) + `":1}`: strings.Repeat("k", maxMember) + ":number",
	} {
		if got := s.of(msg.Raw([]byte(raw))); got != want {
			t.Errorf("%s: %q, want %q", raw, got, want)
		}
		if got := s.of(msg.Plain(raw)); got != want {
			t.Errorf("%s as a value: %q, want %q", raw, got, want)
		}
	}
	if got := s.of(msg.Quoted([]byte(`{\"cmd\": \"ls\"}`))); got != "cmd:string" {
		t.Errorf("in a string: %q", got)
	}
}

func FuzzSignature(f *testing.F) {
	f.Add([]byte(`{"a":"\\","b":[{"c":1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var s signatures
		if got := s.of(msg.Raw(b)); len(got) > maxMembers*(3*maxMember+8) {
			t.Errorf("%d bytes", len(got))
		}
	})
}

// TestAttempts: a call that follows failures of its tool is another attempt; one that was made
// beside them is not.
func TestAttempts(t *testing.T) {
	failed := func(id string, at int64) msg.Message {
		m := result("a", id, at)
		m.IsError = true
		return m
	}
	w := newHarness(t)
	for _, m := range []msg.Message{
		user("a", 0), called("a", "c1", "fetch", 1), called("a", "beside", "fetch", 1), failed("c1", 2), failed("beside", 3), called("a", "c2", "fetch", 4), failed("c2", 5),
		called("a", "other", "read", 6), called("a", "c3", "fetch", 7), result("a", "other", 8), result("a", "c3", 9), called("a", "c4", "fetch", 10), result("a", "c4", 11),
	} {
		w.apply(m)
		w.restart()
	}
	want := map[string]uint16{"c1": 1, "beside": 1, "c2": 2, "other": 1, "c3": 3, "c4": 1}
	for _, s := range w.rows {
		if s.Tool.CallID != "" && s.Attempt != want[s.Tool.CallID] {
			t.Errorf("%s is attempt %d, want %d", s.Tool.CallID, s.Attempt, want[s.Tool.CallID])
		}
	}
}
