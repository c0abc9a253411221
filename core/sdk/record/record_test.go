package record

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/sdk/conversation"
	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// state counts the notes of a stream.
type state struct {
	Notes int `json:",omitempty"`
}

// notes reads {"note": …}; its flush has the number of notes.
type notes struct {
	*Current
	*state
}

func (d *notes) In() (session, run string) { return d.Origin, "run" }

func (d *notes) Read() {
	if d.Root.Get("bad").Exists() {
		d.Out.Problem(msg.ReasonWrongType, "a test")
		return
	}
	d.At = conversation.Time{Nanos: 7}
	if note := d.Root.Get("note"); note.Exists() {
		d.Notes++
		Hide(d.Add(msg.Status, fmt.Sprint("note-", d.Notes)), "note").Content = note.Text()
		return
	}
	d.Unknown("", d.Root, "fact")
}

func (d *notes) Flush() {
	if !d.Root.Exists() && d.Frame == nil {
		d.Add(msg.Status, fmt.Sprint("flush-", d.Notes))
	}
}

// framed looks at each frame.
type framed struct {
	notes
	seen []frame.Kind
}

func (d *framed) Begin() bool {
	d.seen = append(d.seen, d.Frame.Kind)
	return string(d.Frame.Data) != "[DONE]"
}

func format() Format[state] {
	return Format[state]{
		Info:      decoder.Info{Name: "notes", Revision: 3},
		LeavesOut: []byte(`[{"path": "/left", "why": "a test"}]`),
		State:     1,
		Open:      func(r *Current, s *state) Reader { return &notes{r, s} },
	}
}

func open(t *testing.T, f Format[state]) decoder.Decoder {
	t.Helper()
	d, err := f.Factory().New(decoder.Stream{Origin: "b\xffy"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// play returns a line for each message and problem.
func play(t *testing.T, d decoder.Decoder, frames ...frame.Frame) (got []string) {
	t.Helper()
	for i := range frames {
		var out decoder.Output
		if err := d.Decode(&frames[i], &out); err != nil {
			t.Fatal(err)
		}
		got = append(got, lines(&out)...)
	}
	return got
}

func lines(out *decoder.Output) (got []string) {
	for _, m := range out.Messages {
		key, _, _ := strings.Cut(m.Key, ":")
		got = append(got, fmt.Sprintf("%s %s %s/%s %d %s %s", m.Kind, key, m.Session, m.Run, m.Time, m.Content.String(), m.Attr("unknown_fields")))
	}
	for _, p := range out.Problems {
		got = append(got, p.Reason)
	}
	return got
}

func line(data string) frame.Frame { return frame.Frame{Kind: frame.Line, Data: []byte(data)} }

func want(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i := range got {
		got[i] = strings.TrimSpace(got[i])
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestBadFrames(t *testing.T) {
	f := format()
	frames := []frame.Frame{line(`{`), line("\"\xff\""), line(`[1]`), line(`{"note":"ebb"}`)}
	want(t, play(t, open(t, f), frames...), msg.ReasonInvalidJSON, msg.ReasonInvalidUTF8, msg.ReasonWrongType, "status note-1 b\uFFFDy/ 7 ebb")
	f.Takes = func(f *frame.Frame, root jsonv.Value) bool { return f.Kind == frame.Line && root.Is(jsonv.Array) }
	want(t, play(t, open(t, f), line(`[1]`), line(`1`)), "unknown unknown b\uFFFDy/run 7 [1]", msg.ReasonWrongType)
}

func TestRecordsOfALine(t *testing.T) {
	want(t, play(t, open(t, format()), line(`{"note":"ebb","more":"a field that is new"}{"note":"flow"} {"note":"slack"}`)),
		`status note-1 b`+"\uFFFD"+`y/ 7 ebb {"/more":"a field that is new"}`, "status note-2 b\uFFFDy/ 7 flow", "status note-3 b\uFFFDy/ 7 slack")
	want(t, play(t, open(t, format()), line(`{"note":"ebb"}{"note":`), line(`{"note":"ebb"}[1]`), line(`{"note":"ebb"},`)),
		"status note-1 b\uFFFDy/ 7 ebb", msg.ReasonInvalidJSON, msg.ReasonInvalidJSON, msg.ReasonInvalidJSON)
	want(t, play(t, open(t, format()), frame.Frame{Kind: frame.Event, Data: []byte(`{"note":"ebb"}{"note":"flow"}`)}), msg.ReasonInvalidJSON)
}

func TestFramesWithoutRecord(t *testing.T) {
	frames := []frame.Frame{{Kind: frame.Close}, {Kind: frame.Request, Data: []byte("\n")}, {Kind: frame.Event, Data: []byte("[DONE]")}, {Kind: frame.Request, Data: []byte(`{"note":"ebb"}`)}}
	want(t, play(t, open(t, format()), frames...), msg.ReasonInvalidJSON, "status note-1 b\uFFFDy/ 7 ebb")
	f, reader := format(), &framed{}
	f.Open = func(r *Current, s *state) Reader { reader.notes = notes{r, s}; return reader }
	want(t, play(t, open(t, f), frames...), "status note-1 b\uFFFDy/ 7 ebb")
	if !slices.Equal(reader.seen, []frame.Kind{frame.Close, frame.Request, frame.Event, frame.Request}) {
		t.Errorf("frames %v", reader.seen)
	}
}

func TestUnreadIsKept(t *testing.T) {
	want(t, play(t, open(t, format()), line(`{"note":"ebb","left":"a field that is left out","more":"a field that is new"}`)),
		`status note-1 b`+"\uFFFD"+`y/ 7 ebb {"/more":"a field that is new"}`)
	want(t, play(t, open(t, format()), line(`{"bad":"a field that is not read"}`)), msg.ReasonWrongType)
}

func TestSnapshot(t *testing.T) {
	a, b := open(t, format()), open(t, format())
	if s, err := a.(decoder.Snapshotter).Snapshot(); s != nil || err != nil {
		t.Errorf("a new decoder has the snapshot %q, %v", s, err)
	}
	play(t, a, line(`{"note":"ebb"}`))
	s, err := a.(decoder.Snapshotter).Snapshot()
	if err != nil || string(s) != `{"Version":1,"Notes":1}` {
		t.Fatalf("snapshot %q, %v", s, err)
	}
	if err := b.(decoder.Snapshotter).Restore(s); err != nil {
		t.Fatal(err)
	}
	want(t, play(t, b, line(`{"note":"flow"}`)), "status note-2 b\uFFFDy/ 7 flow")
	f := format()
	f.State = 2
	if err := open(t, f).(decoder.Snapshotter).Restore(s); err == nil {
		t.Error("a snapshot of another version is restored")
	}
}

func TestFlush(t *testing.T) {
	d := open(t, format())
	play(t, d, line(`{"note":"ebb"}`))
	for range 2 {
		var out decoder.Output
		if err := d.Flush(&out); err != nil {
			t.Fatal(err)
		}
		want(t, lines(&out), "status flush-1 b\uFFFDy/ 0")
	}
}

// tuned has an option.
type tuned struct {
	notes
	Tide string
}

func (d *tuned) Configure(options json.RawMessage) error { return Options(options, d) }

func TestOptions(t *testing.T) {
	f := format().Factory()
	if _, err := f.New(decoder.Stream{Options: []byte(`{"a":1}`)}); err == nil {
		t.Error("an option is accepted")
	}
	if info := f.Info(); info.Version != "1.0.0" || info.Revision != 3 {
		t.Errorf("%+v", info)
	}
	g, reader := format(), &tuned{}
	g.Open = func(*Current, *state) Reader { return reader }
	if _, err := g.Factory().New(decoder.Stream{Options: []byte(`{"tide":"ebb"}`)}); err != nil || reader.Tide != "ebb" {
		t.Errorf("tide %q, %v", reader.Tide, err)
	}
	if _, err := g.Factory().New(decoder.Stream{Options: []byte(`{"a":1}`)}); err == nil || !strings.HasPrefix(err.Error(), "notes: options: ") {
		t.Errorf("an unknown option: %v", err)
	}
}

// wrapped reads the documents on the lines of a frame.
type wrapped struct{ notes }

func (d *wrapped) Read() {
	for text := range strings.Lines(string(d.Frame.Data)) {
		if _, ok := d.Parse([]byte(text)); ok {
			d.notes.Read()
		}
	}
}

func TestWrapped(t *testing.T) {
	f := format()
	f.Wrapped = true
	f.Open = func(r *Current, s *state) Reader { return &wrapped{notes{r, s}} }
	d := open(t, f)
	want(t, play(t, d, line(`{"note":"ebb","more":"a field that is new"}`+"\n"+`{"note":"flow","less":"a field of the second"}`), frame.Frame{Kind: frame.Close}),
		`status note-1 b`+"\uFFFD"+`y/ 7 ebb {"/more":"a field that is new"}`,
		`status note-2 b`+"\uFFFD"+`y/ 7 flow {"/less":"a field of the second"}`)
	want(t, play(t, d, line("{\n{\n"), line(`{"note":"ebb"}`)), msg.ReasonInvalidJSON, "status note-3 b\uFFFDy/ 7 ebb")
}

func TestDocumentsAreShared(t *testing.T) {
	f := format().Factory()
	var streams []*stream[state]
	for range 2 {
		d, err := f.New(decoder.Stream{})
		if err != nil {
			t.Fatal(err)
		}
		play(t, d, line(`{"note":"ebb"}`), line(`{`))
		streams = append(streams, d.(*stream[state]))
	}
	for _, d := range streams {
		if d.doc != nil || d.Root.Exists() || d.Frame != nil || d.Out != nil {
			t.Error("a stream keeps its frame")
		}
	}
}
