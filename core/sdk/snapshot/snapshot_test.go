package snapshot

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type call struct {
	ID   string
	Name string `json:",omitempty"`
}

type turn struct {
	Run   string           `json:",omitempty"`
	Calls []*call          `json:",omitempty"`
	Named map[string]*call `json:",omitempty"`
}

type state struct {
	turn
	Text  []byte   `json:",omitempty"`
	Done  []uint64 `json:",omitempty"`
	Turns []turn   `json:",omitempty"`
	Last  *call    `json:",omitempty"`
	cache []byte
}

func full() state {
	return state{
		turn: turn{Run: "r", Calls: []*call{{"a", "read"}, {"b", ""}}, Named: map[string]*call{"y": {"c", ""}, "x": {"d", ""}}},
		Text: []byte{0, 255}, Done: []uint64{1, 1<<63 + 1}, Turns: []turn{{Run: "s", Calls: []*call{{"e", ""}}}}, Last: &call{"f", ""},
	}
}

// handWritten is the form that decoders wrote by hand before there was this package.
type handWritten struct {
	Version int
	state
}

func TestForm(t *testing.T) {
	s := full()
	got, err := Of(3, &s)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(handWritten{3, s})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var back state
	if err := Restore(3, got, &back); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s, back, cmp.AllowUnexported(state{})); d != "" {
		t.Error(d)
	}
	if b, err := Of(3, &state{}); b != nil || err != nil {
		t.Errorf("of nothing: %q %v", b, err)
	}
	if b, err := Of(3, &state{cache: []byte("x")}); string(b) != `{"Version":3}` || err != nil {
		t.Errorf("of a cache alone: %q %v", b, err)
	}
}

// TestDamaged has snapshots that are not taken up, and leave the state as it is.
func TestDamaged(t *testing.T) {
	for in, want := range map[string]string{
		``:                                 "it has no version",
		`{}`:                               "it has no version",
		`{"Run":"r","Version":3}`:          "it has no version",
		`{"Version":2}`:                    `version "2", want 3`,
		`{"Version":33}`:                   `version "33", want 3`,
		`{"Version":3`:                     "it has no version",
		`{"Version":3,"Run":"r"`:           "unexpected end of JSON input",
		`{"Version":3,"Run":7}`:            "cannot unmarshal number",
		`{"Version":3,"Calls":[null]}`:     "turn.Calls[0] is null",
		`{"Version":3,"Named":{"k":null}}`: "turn.Named[k] is null",
		`{"Version":3,"Turns":[{},{"Calls":[{"ID":"a"},null]}]}`: "Turns[1].Calls[1] is null",
	} {
		s := full()
		err := Restore(3, []byte(in), &s)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", in, err, want)
		}
		if d := cmp.Diff(full(), s, cmp.AllowUnexported(state{})); d != "" {
			t.Errorf("%s: %s", in, d)
		}
	}
	s := full()
	if err := Restore(3, []byte(`{"Version":3,"Last":null,"New":1}`), &s); err != nil {
		t.Errorf("a member that is new, or null where it may be: %v", err)
	}
}

func FuzzRestore(f *testing.F) {
	s := full()
	b, err := Of(1, &s)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, in []byte) {
		var s state
		if Restore(1, in, &s) != nil {
			return
		}
		out, err := Of(1, &s)
		if err != nil || out == nil {
			return
		}
		var again state
		if err := Restore(1, out, &again); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		if b, err := Of(1, &again); err != nil || !bytes.Equal(b, out) {
			t.Errorf("%s becomes %s: %v", out, b, err)
		}
	})
}

func BenchmarkSnapshot(b *testing.B) {
	s := full()
	for range 200 {
		s.Calls = append(s.Calls, &call{"call_0123456789", "exec_command"})
	}
	b.Run("snapshot", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			out, err := Of(1, &s)
			if err != nil {
				b.Fatal(err)
			}
			var back state
			if err := Restore(1, out, &back); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("by_hand", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			out, err := json.Marshal(handWritten{1, s})
			if err != nil {
				b.Fatal(err)
			}
			var back handWritten
			if err := json.Unmarshal(out, &back); err != nil {
				b.Fatal(err)
			}
		}
	})
}
