package conversation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

func TestRunStartsOnce(t *testing.T) {
	var r Run
	for i, id := range []string{"a", "a", "b"} {
		if id != r.ID {
			r.Begin(id)
		}
		for n := range 2 {
			var m msg.Message
			r.Mark(&m)
			if want := i != 1 && n == 0; (m.Signal == msg.RunStart) != want || m.Run != id {
				t.Errorf("message %d of run %s: %s in %q", n, id, m.Signal, m.Run)
			}
		}
	}
	var none Run
	var m msg.Message
	if none.Mark(&m); m.Signal != msg.NoSignal {
		t.Error("a message between two runs starts one")
	}
}

func TestRunNamesItsParentOnce(t *testing.T) {
	r := Run{ID: "child", Child: true}
	parents := func() (out []string) {
		for range 2 {
			var m msg.Message
			r.Mark(&m)
			out = append(out, m.ParentRun+"/"+m.ParentCall)
		}
		return out
	}
	got := parents()
	r.Caused("parent", "call", msg.ByNativeID, 0)
	r.Caused("other", "call2", msg.ByPrompt, 0)
	got = append(got, parents()...)
	r.Begin("ignored") // input after its end: the same run goes on
	got = append(got, parents()...)
	if d := cmp.Diff([]string{"?/", "/", "parent/call", "/", "/", "/"}, got); d != "" || r.ID != "child" {
		t.Errorf("%s (-want +got):\n%s", r.ID, d)
	}
}

func TestWake(t *testing.T) {
	var r Run
	if !r.Wake("a") || r.Wake("b") || r.ID != "a" {
		t.Errorf("run %q", r.ID)
	}
	var m msg.Message
	if r.End(&m); m.Signal != msg.RunEnd || r.Active() {
		t.Errorf("%s, active %t", m.Signal, r.Active())
	}
	if !r.Wake("c") || r.ID != "c" || r.Started {
		t.Errorf("after the end: %+v", r)
	}
}

func TestUsageOnce(t *testing.T) {
	r := Response{ID: "r", Run: "run"}
	var out decoder.Output
	if r.Usage(&out, msg.Complete) != nil {
		t.Error("usage of a response without counts")
	}
	r.Count(Counts{Input: 1, Output: 2}, msg.TranscriptPartial)
	for _, c := range []msg.Completeness{msg.Partial, msg.Partial, msg.Complete, msg.Complete, msg.Partial} {
		r.Usage(&out, c)
	}
	r.Count(Counts{Input: 9}, msg.Provider)
	r.Usage(&out, msg.Complete)
	var got []string
	for _, m := range out.Messages {
		got = append(got, fmt.Sprintf("%s %s %d %s", m.Key, m.Complete, m.Usage.Input, m.Usage.Provenance))
	}
	p := "usage:r partial 1 transcript_partial"
	if d := cmp.Diff([]string{p, p, strings.Replace(p, "r partial", "r complete", 1)}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestHighestCountWins(t *testing.T) {
	a, b := Counts{Input: 4, Output: 25, CacheRead: 9}, Counts{Input: 3, Output: 302, Reasoning: 7}
	for _, order := range [][]Counts{{a, b}, {b, a}, {a, b, a, a}} {
		r := Response{ID: "r"}
		for _, c := range order {
			r.Count(c, msg.TranscriptPartial)
		}
		r.Stop = "end_turn"
		var out decoder.Output
		want := msg.Tokens{Input: 4, Output: 295, CacheRead: 9, Reasoning: 7, Provenance: msg.TranscriptFinal}
		if m := r.Usage(&out, msg.Complete); m.Usage != want {
			t.Errorf("%+v, want %+v", m.Usage, want)
		}
	}
}

func TestTokenClassesAreExclusive(t *testing.T) {
	for _, c := range []Counts{{1, 10, 2, 3, 4, 2}, {Output: 4, Reasoning: 9}, {CacheWrite: 4, CacheWrite1h: 4}, {}} {
		if got, want := c.Tokens(msg.Provider).Total(), c.Input+c.Output+c.CacheRead+c.CacheWrite; got != want {
			t.Errorf("%+v: the sum is %d, want %d", c, got, want)
		}
		if got := CountsOf(c.Tokens(msg.Provider)); got.Tokens(msg.Provider) != c.Tokens(msg.Provider) {
			t.Errorf("%+v becomes %+v", c, got)
		}
	}
	if _, ok := (Counts{Input: 1}).Sub(Counts{Input: 2}); ok {
		t.Error("1 - 2")
	}
	if rest, ok := (Counts{Input: 3, Output: 5, Reasoning: 1}).Sub(Counts{Input: 2, Output: 5, Reasoning: 2}); !ok || rest != (Counts{Input: 1}) {
		t.Errorf("%+v %t", rest, ok)
	}
}

func TestPartsHaveTheSameKeysInEachForm(t *testing.T) {
	r := Response{ID: "r"}
	var got []string
	for _, k := range []msg.Kind{msg.Reasoning, msg.Assistant, msg.Assistant, msg.Reasoning, msg.Assistant} {
		got = append(got, r.Key(k))
	}
	if d := cmp.Diff([]string{"r/thinking", "r/text", "r/text/1", "r/thinking/1", "r/text/2"}, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestStreamEqualsReload decodes a response in pieces, in pieces and then whole, and whole
// only.
func TestStreamEqualsReload(t *testing.T) {
	texts := []string{"How deep", "Four metres"}
	forms := map[string][]msg.Message{}
	for _, form := range []string{"pieces", "both", "whole"} {
		var out decoder.Output
		r, d := Response{ID: "r"}, Deltas{}
		emit := func(text string) {
			m := out.Add()
			m.Kind, m.Key, m.Session, m.Complete, m.Content = msg.Assistant, r.Key(msg.Assistant), "s", msg.Complete, msg.Plain(text)
			r.Mark(m)
		}
		for i, text := range texts {
			if form != "whole" {
				p := d.Open(fmt.Sprint(i), msg.Assistant)
				for _, piece := range strings.SplitAfter(text, " ") {
					d.Append(p, msg.Plain(piece), MaxBytes)
				}
			}
			if form != "pieces" {
				d.Whole(msg.Assistant)
				emit(text)
			}
		}
		for len(d.Parts) > 0 {
			p := d.Parts[0]
			d.Drop(p)
			emit(string(p.Text))
		}
		if d.Bytes != 0 {
			t.Errorf("%s: %d bytes are left", form, d.Bytes)
		}
		forms[form] = msg.Fold(out.Messages)
	}
	for _, form := range []string{"pieces", "both"} {
		if d := cmp.Diff(forms["whole"], forms[form], cmp.Transformer("text", msg.Text.String)); d != "" {
			t.Errorf("%s (-whole +%s):\n%s", form, form, d)
		}
	}
}

func TestLastText(t *testing.T) {
	long := strings.Repeat("é", maxKept)
	for _, c := range []struct {
		set, is string
		want    bool
	}{
		{`"a\u00e9"`, `"aé"`, true},
		{`"\ud83d\ude00\n\u00e9\/x\ud800"`, "\"😀\\né/x\ufffd\"", true},
		{`"` + long + `\ud83d\ude00"`, `"` + long + `😀"`, true},
		{`"a"`, `"b"`, false},
		{`""`, `""`, true},
		{`"` + long + `"`, `"` + strings.ReplaceAll(long, "é", `\u00e9`) + `"`, true},
		{`"` + long + `"`, `"` + long + `!"`, false},
	} {
		for _, restored := range []bool{false, true} {
			var l LastText
			l.Set(parse(t, c.set).Text())
			if restored {
				b, err := json.Marshal(struct{ L LastText }{l})
				if err != nil {
					t.Fatal(err)
				}
				var s struct{ L LastText }
				if err := json.Unmarshal(b, &s); err != nil {
					t.Fatal(err)
				}
				l = s.L
			}
			if got := l.Is(parse(t, c.is).Text()); got != c.want {
				t.Errorf("%.20s after %.20s: %t (restored %t)", c.is, c.set, got, restored)
			}
		}
	}
}

func parse(t *testing.T, s string) jsonv.Value {
	t.Helper()
	var doc jsonv.Doc
	if err := doc.Parse([]byte(s)); err != nil {
		t.Fatal(err)
	}
	return doc.Root()
}

type call struct {
	Call
	To string
}

func TestCallsAreBounded(t *testing.T) {
	var calls Calls[*call]
	const more = 10
	for i := range MaxCalls + more {
		_, evicted := calls.Add(&call{Call: Call{ID: fmt.Sprint(i)}})
		if (evicted != nil) != (i >= MaxCalls) || evicted != nil && evicted.ID != fmt.Sprint(i-MaxCalls) {
			t.Fatalf("call %d evicts %+v", i, evicted)
		}
	}
	if len(calls.Open) != MaxCalls || calls.Evicted != more || calls.Get("0") != nil {
		t.Errorf("%d open calls, %d evicted", len(calls.Open), calls.Evicted)
	}
	for len(calls.Open) > 0 {
		calls.End(calls.Open[0])
	}
	if len(calls.Ended) != MaxEnded {
		t.Errorf("%d ended calls", len(calls.Ended))
	}
}

func TestCallOnce(t *testing.T) {
	var calls Calls[*call]
	calls.Add(&call{Call: Call{ID: "a"}, To: "first"})
	if added, _ := calls.Add(&call{Call: Call{ID: "a"}, To: "second"}); added || len(calls.Open) != 1 || calls.Get("a").To != "first" {
		t.Errorf("%+v", calls.Open)
	}
	if c := calls.Take("a"); c == nil || c.To != "first" || calls.Take("a") != nil {
		t.Errorf("%+v", c)
	}
}

func TestEarlyResult(t *testing.T) {
	var calls Calls[*call]
	calls.End(&call{Call: Call{ID: "a"}})
	if added, _ := calls.Add(&call{Call: Call{ID: "a"}}); added || len(calls.Open) != 0 {
		t.Error("a call is open after its result")
	}
	if calls.GetOpen("a") != nil || calls.Get("a") == nil {
		t.Error("the ended call is lost, or open")
	}
}

func TestCallsWithoutIDs(t *testing.T) {
	var calls Calls[*call]
	for _, c := range []call{{Call{ID: "", Name: "read"}, "1"}, {Call{ID: "", Name: "write"}, "2"}, {Call{ID: "x", Name: "read"}, "3"}, {Call{ID: "", Name: "read"}, "4"}} {
		calls.Add(&c)
	}
	var got []string
	for _, name := range []string{"read", "read", "write"} {
		c := calls.Next(name)
		got = append(got, c.To)
		calls.Remove(c)
	}
	if d := cmp.Diff([]string{"1", "4", "2"}, got); d != "" || calls.Next("read") != nil {
		t.Errorf("(-want +got):\n%s", d)
	}
	if calls.Get("") != nil {
		t.Error("a call is found by no id")
	}
}

func TestOpenCallsAreFoundFirst(t *testing.T) {
	var calls Calls[*call]
	calls.Add(&call{Call{ID: "a"}, "x"})
	calls.Add(&call{Call{ID: "b"}, "y"})
	calls.End(&call{Call{ID: "c"}, "x"})
	for to, want := range map[string]*call{"x": calls.Get("a"), "y": calls.Get("b"), "z": nil} {
		if got := calls.Find(func(c *call) bool { return c.To == to }); got != want {
			t.Errorf("%s: %+v", to, got)
		}
	}
	calls.End(calls.Get("a"))
	if c := calls.Find(func(c *call) bool { return c.ID == "a" }); c == nil {
		t.Error("an ended call is not found")
	}
}

func TestNumberedCalls(t *testing.T) {
	var calls Calls[*call]
	for _, c := range []struct{ response, id, want string }{{"r1", "call_0", "r1/call_0"}, {"r2", "call_0", "r2/call_0"}, {"r2", "toolu_b", "toolu_b"}} {
		made := &call{Call{ID: c.id}, "x"}
		made.Within(c.response)
		calls.Add(made)
		if named := calls.Named(c.id); made.ID != c.want || named != made {
			t.Errorf("%s of %s is %s, and its id names %+v", c.id, c.response, made.ID, named)
		}
	}
	calls.End(calls.Get("r2/call_0"))
	if c := calls.Named("call_0"); c != calls.Get("r1/call_0") {
		t.Errorf("%+v is found before the open call", c)
	}
	calls.End(calls.Get("r1/call_0"))
	if c := calls.Named("call_0"); c != calls.Get("r1/call_0") || calls.Named("") != nil || calls.Named("call_1") != nil {
		t.Errorf("%+v is found, and not the call that ended last", c)
	}
}

func TestNumbers(t *testing.T) {
	for id, want := range map[string]bool{
		"0": true, "12": true, "call_0": true, "functions.search:1": true, "call_99": true,
		"": false, "call_": false, "call_123": false, "toolu_01": false, "c1": false, "call_a1": false, "toolu_01A09q90": false, "call_Zb2x77": false,
	} {
		if got := numbered(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
	}
}

func TestCallsAreTheirJSON(t *testing.T) {
	var calls, restored Calls[*call]
	calls.Add(&call{Call{ID: "a", Name: "read"}, "x"})
	calls.End(&call{Call{ID: "b", Name: "write"}, "y"})
	b, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &restored); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(calls, restored); d != "" {
		t.Error(d)
	}
}

func TestDeltasAreBounded(t *testing.T) {
	var d Deltas
	for i := range MaxParts + 10 {
		d.Append(d.Open(fmt.Sprint(i), msg.Assistant), msg.Plain("x"), MaxBytes)
	}
	p := d.Part("0")
	d.Append(p, msg.Plain(strings.Repeat("x", MaxBytes)), MaxBytes)
	if len(d.Parts) != MaxParts || !p.Cut || d.Bytes != MaxParts {
		t.Errorf("%d parts, cut %t, %d bytes", len(d.Parts), p.Cut, d.Bytes)
	}
	if d.Drop(p); d.Drop(p) || d.Bytes != MaxParts-1 {
		t.Errorf("%d bytes after a part was dropped", d.Bytes)
	}
}

// TestPiecesMakeOnePart: the pieces of a name are one part in their order, which the first of them opens.
func TestPiecesMakeOnePart(t *testing.T) {
	var d Deltas
	for _, s := range []string{"a1", "b1", "a2", "b2"} {
		p := d.Piece(s[:1], msg.Reasoning, msg.Plain(s), MaxBytes)
		if p != d.Part(s[:1]) || p.Kind != msg.Reasoning {
			t.Errorf("%s is a piece of %+v", s, p)
		}
	}
	if a, b := string(d.Part("a").Text), string(d.Part("b").Text); a != "a1a2" || b != "b1b2" || len(d.Parts) != 2 || d.Bytes != 8 {
		t.Errorf("%d parts of %d bytes, %s and %s", len(d.Parts), d.Bytes, a, b)
	}
	for i := range MaxParts {
		d.Piece(fmt.Sprint(i), msg.Assistant, msg.Plain("x"), MaxBytes)
	}
	if p := d.Piece("beyond", msg.Assistant, msg.Plain("x"), MaxBytes); p != nil || len(d.Parts) != MaxParts {
		t.Errorf("%d parts, and %+v", len(d.Parts), p)
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{`{}`: "", `[]`: msg.ReasonWrongType, `{`: msg.ReasonInvalidJSON, "{\"\xff\":1}": msg.ReasonInvalidUTF8} {
		var doc jsonv.Doc
		var out decoder.Output
		_, ok := ParseObject(&doc, []byte(in), &out)
		got := ""
		for _, p := range out.Problems {
			got += p.Reason
		}
		if ok != (want == "") || got != want {
			t.Errorf("%q: %t, %s", in, ok, got)
		}
	}
	for in, ok := range map[string]bool{"": true, "{}": true, `{"a":1}`: false, "[]": false, "{": false} {
		if err := NoOptions("x", []byte(in)); (err == nil) != ok {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// TestOutcomes: a run ends for a reason in each format, and an error that is there is the content of its message.
func TestOutcomes(t *testing.T) {
	if ended, failed := Outcome(false), Outcome(true); ended != "stop" || failed != "error" {
		t.Errorf("%q, and if it failed %q", ended, failed)
	}
	for in, want := range map[string]string{`{}`: "before", `{"error":null}`: "before", `{"error":"no hive"}`: "no hive", `{"error":{"code":7}}`: `{"code":7}`} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(in)); err != nil {
			t.Fatal(err)
		}
		m := msg.Message{Content: msg.Plain("before")}
		if Fault(&m, doc.Root().Get("error")); m.Content.String() != want || m.IsError != (want != "before") {
			t.Errorf("%s: %q, error %t", in, m.Content.String(), m.IsError)
		}
	}
}
