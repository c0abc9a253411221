package exchange

import (
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

func prompt(s string) Item { return Item{Who: Prompt, Text: msg.Plain(s)} }

// TestConversation has the requests of one conversation, each of which repeats the messages
// before it: only new messages are emitted, and a run goes from prompt to prompt.
func TestConversation(t *testing.T) {
	system := Item{Who: Instructions, Text: msg.Plain("be brief")}
	result := Item{Who: Result, CallID: "c1", Text: msg.Plain("4 m")}
	conversation := []Item{system, prompt("how deep?"), {Who: Model}, result, {Who: Model}, prompt("and there?")}
	var x Exchange
	var sessions, runs []string
	for _, c := range []struct {
		items int
		kinds string
	}{
		{2, "system user status"}, {4, "tool_result status"}, {6, "system user status"},
	} {
		var out decoder.Output
		x.Request(&out, Ask{Model: "m", Items: conversation[:c.items]})
		var kinds []string
		for _, m := range out.Messages {
			kinds = append(kinds, m.Kind.String())
		}
		if got := strings.Join(kinds, " "); got != c.kinds {
			t.Errorf("a request of %d items gives %s, want %s", c.items, got, c.kinds)
		}
		sessions, runs = append(sessions, x.Session), append(runs, x.Run)
	}
	if sessions[0] != sessions[1] || sessions[1] != sessions[2] {
		t.Errorf("sessions %q", sessions)
	}
	if runs[0] != runs[1] || runs[1] == runs[2] {
		t.Errorf("runs %q", runs)
	}
	var out decoder.Output
	x.Request(&out, Ask{Session: "named", Model: "m", Items: conversation[:2]})
	if x.Session != "named" || x.Run == runs[0] {
		t.Errorf("named: %s %s", x.Session, x.Run)
	}
}

// TestBounds has more parts and bytes than the limits: the emitted part is marked as cut.
func TestBounds(t *testing.T) {
	x := Exchange{}
	x.Begin("r", "m")
	var out decoder.Output
	for range conversation.MaxParts + 10 {
		x.Add(&out, x.Open("p", msg.Assistant, ""), msg.Plain("x"))
	}
	if len(x.Parts) != conversation.MaxParts {
		t.Errorf("%d parts", len(x.Parts))
	}
	x = Exchange{}
	x.Begin("r", "m")
	p := x.Open("p", msg.Assistant, "")
	for range 20 {
		x.Add(&out, p, msg.Plain(strings.Repeat("x", 1<<20)))
	}
	out.Reset()
	x.End(&out)
	if m := out.Messages[0]; m.Content.Len() > conversation.MaxBytes || m.Attr("cut") != "true" || x.Bytes != 0 {
		t.Errorf("%d bytes, cut %q, %d left", m.Content.Len(), m.Attr("cut"), x.Bytes)
	}
}

func TestOptions(t *testing.T) {
	for raw, ok := range map[string]bool{``: true, `{"agent":"pilot"}`: true, `{"agent":""}`: false, `{"agents":"x"}`: false, `[]`: false} {
		if _, err := Options([]byte(raw)); (err == nil) != ok {
			t.Errorf("%q: %v", raw, err)
		}
	}
}

// TestRequestParameters has the parameters of a request and its tools, which are emitted once
// for a prompt.
func TestRequestParameters(t *testing.T) {
	var doc jsonv.Doc
	if err := doc.Parse([]byte(`{"limit": 64, "warm": 0.5, "stream": true, "stop": "ebb", "none": null, "object": {}, "format": "json_schema",
		"says": "tides", "schema": {"type": "object"}}`)); err != nil {
		t.Fatal(err)
	}
	v := doc.Root()
	ask := Ask{Model: "m", Items: []Item{prompt("how deep?")}}
	ask.Param(msg.ParamMaxTokens, v.Get("limit"))
	ask.Param(msg.ParamTemperature, v.Get("warm"))
	ask.Param(msg.ParamStream, v.Get("stream"))
	ask.Param(msg.ParamTopP, v.Get("none"))
	ask.Param(msg.ParamTopK, v.Get("object"))
	ask.Stops(v.Get("stop"))
	ask.Output(v.Get("format"))
	ask.Tools.Add("", "tide_table", v.Get("says"), v.Get("schema"))
	ask.Tools.Add("web_search", "", v.Get("none"), v.Get("none"))
	var x Exchange
	var out decoder.Output
	x.Request(&out, ask)
	tools, request := &out.Messages[1], &out.Messages[2]
	if got, want := tools.Content.String(), `[{"type":"function","name":"tide_table","description":"tides","parameters":{"type": "object"}},{"type":"web_search","name":"web_search"}]`; strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") || tools.Attr("type") != msg.TypeTools {
		t.Errorf("tools %s, want %s", got, want)
	}
	want := []msg.Attr{
		{Key: msg.ParamMaxTokens, Value: "64"}, {Key: msg.ParamTemperature, Value: "0.5"}, {Key: msg.ParamStream, Value: "true"},
		{Key: msg.ParamStopSequences, Value: `["ebb"]`}, {Key: msg.ParamOutputType, Value: "json"},
	}
	if got := request.Params(); !slices.Equal(got, want) {
		t.Errorf("parameters %v, want %v", got, want)
	}
	if request.Attr(msg.SessionFrom) != "content" || request.Model != "m" {
		t.Errorf("request %+v", request)
	}
	ask.Items = []Item{prompt("how deep?"), {Who: Model}, {Who: Result, CallID: "c", Text: msg.Plain("4 m")}}
	out = decoder.Output{}
	x.Request(&out, ask)
	for i := range out.Messages {
		if out.Messages[i].Attr("type") == msg.TypeTools {
			t.Error("the tools are said again with a result")
		}
	}
}

// TestPartsOfAName: a piece opens its part, the parts whose names begin alike are closed in their order, and a call
// that arrives whole has its arguments.
func TestPartsOfAName(t *testing.T) {
	x, out := Exchange{ID: "r"}, new(decoder.Output)
	x.Piece(out, "0 text", msg.Assistant, msg.Plain("ebb "))
	x.Piece(out, "1 text", msg.Assistant, msg.Plain("neap"))
	x.Piece(out, "0 text", msg.Assistant, msg.Plain("tide"))
	x.CloseAll(out, "0 ")
	x.Call(out, "c", "gauge", msg.Plain(`{"at":1}`))
	x.CloseAll(out, "")
	var got []string
	for _, m := range out.Messages {
		got = append(got, m.Key+" "+m.Content.String()+m.Tool.Arguments.String())
	}
	want := []string{"first_token:r ", "r/text ebb tide", `call:c {"at":1}`, "r/text/1 neap"}
	if !slices.Equal(got, want) || x.Bytes != 0 {
		t.Errorf("%q, %d bytes; want %q", got, x.Bytes, want)
	}
}

// TestInstructionsInTheMidst: they are new where they stand, no part of a conversation's name, and not repeated.
func TestInstructionsInTheMidst(t *testing.T) {
	later := Item{Who: Instructions, Text: msg.Plain("in metres")}
	first, call, result, answer := prompt("how deep?"), Item{Who: Model}, Item{Who: Result, CallID: "c"}, Item{Who: Model}
	var sessions, runs []string
	for _, c := range []struct {
		items []Item
		told  int
	}{
		{[]Item{first}, 0}, {[]Item{first, call, result, later}, 1}, {[]Item{first, call, result, later, answer, prompt("how wide?")}, 0},
	} {
		var x Exchange
		var out decoder.Output
		x.Request(&out, Ask{Items: c.items})
		told := 0
		for i := range out.Messages {
			if out.Messages[i].Kind == msg.System {
				told++
			}
		}
		if told != c.told {
			t.Errorf("%d instructions of %d items, want %d", told, len(c.items), c.told)
		}
		sessions, runs = append(sessions, x.Session), append(runs, x.Run)
	}
	if sessions[0] != sessions[1] || sessions[1] != sessions[2] || runs[0] != runs[1] || runs[1] == runs[2] {
		t.Errorf("sessions %q, runs %q", sessions, runs)
	}
}

// TestFailedEnd: a response whose last word is an error has failed, and one with a reason of its own behind it has not.
func TestFailedEnd(t *testing.T) {
	for stop, failed := range map[string]bool{"": true, "blocked": true, "stop": false} {
		x, out := Exchange{ID: "r"}, new(decoder.Output)
		x.Fail(out, "blocked", msg.Plain("no"))
		if stop != "" {
			x.Stop = stop
		}
		x.End(out)
		if m := out.Messages[len(out.Messages)-1]; m.Signal != msg.RunEnd || m.IsError != failed || failed != (m.Tool.ErrorType == "blocked") {
			t.Errorf("%q: %+v", stop, m)
		}
	}
}
