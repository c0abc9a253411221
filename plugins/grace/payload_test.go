package grace

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

func payloads(t testing.TB) []string {
	return []string{
		"__lemon_mode__{\"mode\":\"chat\"}\n\n", "The quay ", "is {\"free\":true}", " today.", "__lemon_out_end__{\"message_id\":\"12\",\"pid\":\"11\"}\n\n",
		"__lemon_mode__{\"mode\":\"agent\"}\n\n",
		sent(t, "auto_reply", "success", "", "", "Reserving \"it\" {now}."),
		sent(t, "terminal_run", "running", "1-a", "9_0001", "reserve --berth 4"),
		sent(t, "terminal_run", "success", "1-a", "9_0001", "done"),
		sent(t, "task", "completed", "", "9_0001", "Reserved"),
		sent(t, "finish_summery", "success", "1-b", "", "Berth 4 is yours."),
	}
}

// TestFramingDoesNotMatter: base64, chunks, plain JSON, lines and bytes without
// delimiters are the same conversation.
func TestFramingDoesNotMatter(t *testing.T) {
	p := payloads(t)
	want := rowsOf(t, decodeFrames(t, encoded(p...)))
	if n := strings.Count(want, "\n"); n != 7 {
		t.Errorf("%d messages, want 7:\n%s", n, want)
	}
	jsonl := make([]frame.Frame, len(p))
	for i := range p {
		jsonl[i] = frame.Frame{Kind: frame.Line, Data: []byte(strings.TrimRight(p[i], "\n"))}
	}
	jsonl[1].Data = []byte("The quay is {\"free\":true} today.") // a line ends the text before it
	jsonl = append(jsonl[:2], jsonl[4:]...)
	events := lines(p...)
	for i := range events {
		events[i].Kind = frame.Event
	}
	for name, frames := range map[string][]frame.Frame{
		"chunks": chunked(t, p...), "websocket": lines(p...), "plain events": events, "lines": jsonl,
		"bytes": {{Kind: frame.Body, Data: []byte(strings.Join(p, ""))}},
	} {
		got := rowsOf(t, decodeFrames(t, frames))
		if name == "lines" {
			got = strings.Replace(strings.Replace(got, ` today.\n"`, ` today."`, 1), `"content_bytes":33`, `"content_bytes":32`, 1)
		}
		if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s (-base64 +%s):\n%s", name, name, diff)
		}
	}
}

// TestTextIsCutAtAnyByte: how a model's text was cut into pieces does not show.
func TestTextIsCutAtAnyByte(t *testing.T) {
	const text = "潮 is at 18:40, {\"h\": 4.7} metres. <b>Mind</b> the __lemon__ buoy.\n\n"
	want := ""
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		p := []string{"__lemon_mode__{\"mode\":\"chat\"}\n\n"}
		for rest := []rune(text); len(rest) > 0; {
			n := 1 + random.IntN(len(rest))
			p, rest = append(p, string(rest[:n])), rest[n:]
		}
		p = append(p, "__lemon_out_end__{\"message_id\":\"2\",\"pid\":\"1\"}")
		got := rowsOf(t, decodeFrames(t, encoded(p...)))
		if want == "" {
			want = got
		}
		if got != want {
			t.Fatalf("cut as %q:\n%s\nwant\n%s", p, got, want)
		}
	}
	if !strings.Contains(want, "Mind</b> the __lemon__ buoy.") {
		t.Errorf("the text is %s", want)
	}
}

// TestBadEvents: each is one problem, and the stream goes on.
func TestBadEvents(t *testing.T) {
	for name, c := range map[string]struct {
		mode   string
		frame  frame.Frame
		reason string
	}{
		"not base64":           {"agent", frame.Frame{Kind: frame.Event, Name: "message", Data: []byte("not base64!")}, reasonBase64},
		"cut base64":           {"agent", frame.Frame{Kind: frame.Event, Name: "message", Data: []byte("eyJyb2x")}, reasonBase64},
		"bytes in base64":      {"chat", frame.Frame{Kind: frame.Event, Name: "message", Data: []byte("/v7+/g==")}, msg.ReasonInvalidUTF8},
		"cut JSON inside":      {"agent", encoded(`{"role":"assist`)[0], msg.ReasonInvalidJSON},
		"a number inside":      {"agent", encoded(`42`)[0], msg.ReasonWrongType},
		"nothing":              {"agent", frame.Frame{Kind: frame.Event, Name: "message"}, msg.ReasonInvalidJSON},
		"two objects, one cut": {"agent", frame.Frame{Kind: frame.Line, Data: []byte(`{"a":1}{"b":`)}, msg.ReasonInvalidJSON},
		"a body that is cut":   {"agent", frame.Frame{Kind: frame.Body, Data: []byte(`[{"role":"user"`)}, msg.ReasonInvalidJSON},
		"a body of text":       {"agent", frame.Frame{Kind: frame.Body, Data: []byte(`true`)}, msg.ReasonWrongType},
		"a cut request":        {"agent", frame.Frame{Kind: frame.Request, Name: "POST /api/agent/run", Data: []byte(`{"question":`)}, msg.ReasonInvalidJSON},
	} {
		t.Run(name, func(t *testing.T) {
			d := newStream(t, "x.sse")
			var out decoder.Output
			first := encoded("__lemon_mode__{\"mode\":\"" + c.mode + "\"}\n\n")[0]
			last := encoded(sent(t, "auto_reply", "success", "", "", "On it."))[0]
			for _, f := range []frame.Frame{first, c.frame, last} {
				if err := d.Decode(&f, &out); err != nil {
					t.Fatal(err)
				}
			}
			if len(out.Problems) != 1 || out.Problems[0].Reason != c.reason {
				t.Errorf("problems %v, want one: %s", out.Problems, c.reason)
			}
			if n := len(out.Messages); n == 0 || out.Messages[n-1].Content.String() != "On it." {
				t.Errorf("the stream does not go on: %d messages", n)
			}
		})
	}
}

// A field that the decoder does not know is kept wherever it is: in a message, in its meta, in
// a meta that is a string, in a marker, and in the chunk that wraps a payload.
func TestUnknownFieldIsKept(t *testing.T) {
	const extra = `"mood":"rather melancholic"`
	said := sent(t, "auto_reply", "success", "", "", "On my way.")
	object := strings.Replace(said, `"meta":{`, `"meta":{`+extra+`,`, 1)
	row, err := json.Marshal(`{"action_type":"auto_reply",` + extra + `}`)
	if err != nil {
		t.Fatal(err)
	}
	chunk := chunked(t, said)
	chunk[0].Data = []byte(strings.Replace(string(chunk[0].Data), `{`, `{`+extra+`,`, 1))
	for name, frames := range map[string][]frame.Frame{
		"message": lines(strings.Replace(said, `{`, `{`+extra+`,`, 1)),
		"meta":    lines(object),
		"base64":  encoded(object),
		"string":  lines(`{"role":"assistant","status":"success","content":"On my way.","timestamp":1772445600000,"meta":` + string(row) + `}`),
		"marker":  lines(`__lemon_mode__{"mode":"agent",` + extra + `}` + "\n\n"),
		"search":  lines(`__lemon_mode__{"mode":"chat"}`, `__lemon_chat_SEARCH_start__`+"\n"+`{"content":"found","json":[],`+extra+`}`+"\n"+`__lemon_chat_SEARCH_end__`),
		"chunk":   chunk,
	} {
		if rows := rowsOf(t, decodeFrames(t, frames)); !strings.Contains(rows, "rather melancholic") {
			t.Errorf("%s: not in\n%s", name, rows)
		}
	}
}

// TestPayloadsInOneFrame: a payload behind another in the same frame is decoded too, and each of them once.
func TestPayloadsInOneFrame(t *testing.T) {
	reply, run := sent(t, "auto_reply", "success", "", "", "On my way."), sent(t, "read_file", "success", "u-1", "9_0001", "ahoy")
	end := `__lemon_out_end__{"message_id":"2","pid":"1"}`
	for name, c := range map[string]struct {
		together frame.Frame
		apart    []frame.Frame
	}{
		"event":   {lines(reply + run)[0], lines(reply, run)},
		"base64":  {encoded(reply + run)[0], encoded(reply, run)},
		"chunk":   {chunked(t, reply+run)[0], chunked(t, reply, run)},
		"body":    {frame.Frame{Kind: frame.Body, Data: []byte(reply + run)}, lines(reply, run)},
		"markers": {encoded(`__lemon_mode__{"mode":"chat"}` + end)[0], encoded(`__lemon_mode__{"mode":"chat"}`, end)},
		"text":    {encoded(`__lemon_mode__{"mode":"chat"}Aye.`)[0], encoded(`__lemon_mode__{"mode":"chat"}`, `Aye.`)},
	} {
		want, got := rowsOf(t, decodeFrames(t, c.apart)), rowsOf(t, decodeFrames(t, []frame.Frame{c.together}))
		if d := cmp.Diff(want, got); d != "" || want == "" {
			t.Errorf("%s (-apart +together):\n%s", name, d)
		}
	}
}
