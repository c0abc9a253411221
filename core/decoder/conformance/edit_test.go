package conformance

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
	"github.com/earshot-dev/earshot/core/msg/msgtest"
)

func TestAddMember(t *testing.T) {
	for in, want := range map[string][2]string{
		` {"a":[{}]} `:    {` {"x":0,"a":[{}]} `, ` {"a":[{}],"x":0} `},
		`{}`:              {`{"x":0}`, `{"x":0}`},
		`[{"a":1},2,{ }]`: {`[{"x":0,"a":1},2,{"x":0 }]`, `[{"a":1,"x":0},2,{ "x":0}]`},
		`[]`:              {}, `"s"`: {}, `{`: {}, ``: {},
	} {
		for i, first := range []bool{true, false} {
			got, ok := addMember([]byte(in), `"x":0`, first)
			if ok != (want[i] != "") || ok && (string(got) != want[i] || !json.Valid(got)) {
				t.Errorf("%s: got %s %t, want %s", in, got, ok, want[i])
			}
		}
	}
}

func TestFindDelta(t *testing.T) {
	deltas := []Delta{{At: "/choices/1/d~1x", When: map[string]string{"/type": "delta"}}, {At: "/text"}}
	for in, want := range map[string]string{
		`{"type":"delta","choices":[0,{"d/x":"\u00e4\n"}]}`: "ä\n",
		`{"type":"other","choices":[0,{"d/x":"a"}]}`:        "",
		`{"choices":[],"text": "b" }`:                       "b",
		`{"text":7}`:                                        "",
		`no`:                                                "",
	} {
		d, ok := findDelta([]byte(in), deltas)
		if ok != (want != "") || d.text != want {
			t.Errorf("%s: got %q %t", in, d.text, ok)
		}
		if !ok {
			continue
		}
		var a, b any
		if json.Unmarshal([]byte(in), &a) != nil || json.Unmarshal(d.with(d.text), &b) != nil || text(a) != text(b) {
			t.Errorf("%s: put together again: %s", in, d.with(d.text))
		}
	}
}

func TestSampleHasTheEnds(t *testing.T) {
	r := &runner{suite: &Suite{}}
	r.seed("")
	for _, limit := range []int{0, 1, 2, 47, 48, 49, 1000} {
		got := r.sample(limit, 48)
		if got[0] != 0 || got[len(got)-1] != limit || len(got) > 49 {
			t.Errorf("%d: %v", limit, got)
		}
		for i := 1; i < len(got); i++ {
			if got[i] < got[i-1] {
				t.Errorf("%d: out of order: %v", limit, got)
			}
		}
	}
}

func TestDiffNamesTheField(t *testing.T) {
	a := []item{{id: "s k", line: `{"key":"k","content":"one","n":1}`}, {id: "s gone", line: `{"key":"gone"}`}}
	b := []item{{id: "s k", line: `{"key":"k","content":"two","n":1}`}, {id: "s new", line: `{"key":"new"}`}}
	want := "s k: content: want \"one\", got \"two\"\n- {\"key\":\"gone\"}\n+ {\"key\":\"new\"}"
	if got := diff(a, b); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	swapped := []item{a[1], a[0]}
	if got := diff(a, swapped); got != `the order differs: at place 0 want "s k", got "s gone"` {
		t.Errorf("got %s", got)
	}
}

// TestTextsOfEveryField: a text in any field of a message, but those of the host, is found.
func TestTextsOfEveryField(t *testing.T) {
	n := 0
	msgtest.EachField(msg.Message{}, func(name string, m msg.Message) {
		if strings.HasPrefix(name, "Host.") {
			return
		}
		r := run{messages: []msg.Message{m}}
		if strings.Trim(string(r.texts()), "\x00") != "" {
			n++
			return
		}
		typ := reflect.TypeFor[msg.Message]()
		for part := range strings.SplitSeq(name, ".") {
			f, _ := typ.FieldByName(part)
			typ = f.Type
		}
		if typ.Kind() == reflect.String || typ == reflect.TypeFor[msg.Text]() {
			t.Errorf("%s is not looked at", name)
		}
	})
	if n < 30 {
		t.Errorf("%d fields have a text", n)
	}
}

// TestCutFramesAreNumbered: the pieces of a frame have numbers of their own, and a repeated frame has the number of the
// first of its pieces.
func TestCutFramesAreNumbered(t *testing.T) {
	r := &runner{c: &Case{Deltas: []Delta{{At: "/text", Number: "/n"}}}, rand: rand.New(rand.NewPCG(1, 1))}
	for _, data := range []string{`{"n":1,"text":"ab"}`, `{"n":2}`, `{"n":3,"text":"cd"}`, `{"n":1,"text":"ab"}`, `{"n":4}`, `{"n":"5"}`} {
		r.c.Frames = append(r.c.Frames, frame.Frame{Data: []byte(data)})
	}
	var got []string
	for _, f := range r.recutDeltas(func() bool { return false }, func() bool { return true }) {
		got = append(got, string(f.Data))
	}
	want := []string{`{"n":1,"text":"a"}`, `{"n":2,"text":"b"}`, `{"n":3}`, `{"n":4,"text":"c"}`, `{"n":5,"text":"d"}`, `{"n":1,"text":"ab"}`, `{"n":6}`, `{"n":"5"}`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
