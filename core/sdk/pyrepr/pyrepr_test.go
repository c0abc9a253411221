package pyrepr

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

// TestAsPython compares the package with Python's output, see testdata/python.py.
func TestAsPython(t *testing.T) {
	in, err := os.ReadFile("testdata/python.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	values := 0
	for line := range bytes.Lines(in) {
		var c struct {
			Repr string
			JSON json.RawMessage
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		values++
		got, ok := JSON([]byte(c.Repr))
		if !ok {
			t.Errorf("%s: not read", c.Repr)
			continue
		}
		if d := cmp.Diff(decoded(t, c.JSON), decoded(t, got)); d != "" {
			t.Errorf("%s gives %s (-want +got):\n%s", c.Repr, got, d)
		}
	}
	if values < 70 {
		t.Errorf("%d values", values)
	}
}

// decoded decodes JSON with its numbers as they are written.
func decoded(t *testing.T, b []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	return v
}

// TestForms has the exact JSON of forms that plugins met, in which members keep their order.
func TestForms(t *testing.T) {
	for in, want := range map[string]string{
		`{'agent_id': 'agent-1', 'response': ['yes']}`: `{"agent_id":"agent-1","response":["yes"]}`,
		`["it's", 'a "quote"', 'both \' and "']`:       `["it's","a \"quote\"","both ' and \""]`,
		`['\n\t\r\\', '\x1b\xe9\u20ac\U0001f570']`:     `["\n\t\r\\","\u001bé€🕰"]`,
		`(1, -2.5, 3e+20, True, False, None)`:          `[1,-2.5,3e+20,true,false,null]`,
		`('one', )`:                                    `["one"]`,
		` { } `:                                        `{}`,
		`[ [], {}, () ]`:                               `[[],{},[]]`,
		`'só <b>'`:                                     `"só <b>"`,
		`[TextBlock(text='a'), ThinkingBlock(thinking="it's", signature='')]`:                                    `[{"text":"a"},{"thinking":"it's","signature":""}]`,
		`B(x={'k': [1, -2.5, 1e-07], 'n': None, 't': True, 'f': False})`:                                         `{"x":{"k":[1,-2.5,1e-07],"n":null,"t":true,"f":false}}`,
		`Status(at=datetime.datetime(2026, 3, 4, 9, 10, fold=1, tzinfo=zoneinfo.ZoneInfo(key='Europe/Berlin')))`: `{"at":"2026-03-04T09:10:00"}`,
		`[set(), frozenset(), nan, -inf]`:                                                                        `[[],[],null,null]`,
	} {
		if got, ok := JSON([]byte(in)); !ok || string(got) != want {
			t.Errorf("%s: got %s %v, want %s", in, got, ok, want)
		}
	}
}

// TestRefused has texts that Python never prints, values without a JSON form, and texts that
// break off.
func TestRefused(t *testing.T) {
	for _, in := range []string{
		``, `[`, `[1,`, `[1 2]`, `[1,,2]`, `[,]`, `{'a' 1}`, `{a: 1}`, `{'a': 1, 2}`, `{1, 'a': 2}`, `{(1,): 2}`, `{'a': 1`, `[] []`, `['a' 'b']`,
		`B(`, `B(1)`, `B(1, a=2)`, `B(a=1, 2)`, `B(a=)`, `B`, `B.c`, `.b(a=1)`, `b`, `set(1, 2)`,
		`'a`, `'a\`, `'\`, `'\x4'`, `'\q'`, `'\uzzzz'`, `'\U00110000'`, "'a\nb'", "'\xff'", `'\ud800'`[:6],
		`'a' + 'b'`, `1 + 1`, `__import__('os').system('x')`, `f'{x}'`, `0x10`, `1_000`, `01`, `1.`, `1j`, `(1+2j)`, `lambda: 1`, `[1] # c`, `-nan`,
		`<X.Y: 1`, `<X.Y: >`, `<X: 1>`, `<X.Y>`, `<object object at 0x7f00>`, `<class 'int'>`, `[...]`,
		`datetime.datetime(2026)`, `datetime.datetime(2026, 13, 1, 0, 0)`, `datetime.datetime(2026, 1, 1, 0, 0, tzinfo=`,
		`datetime.datetime(2026, 1, 1, 0, 0, tzinfo=datetime.timezone(datetime.timedelta(weeks=1)))`,
		strings.Repeat("[", MaxDepth+2) + strings.Repeat("]", MaxDepth+2),
	} {
		if got, ok := JSON([]byte(in)); ok {
			t.Errorf("%s: taken for %s", in, got)
		}
	}
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	if got, ok := JSON([]byte(deep)); !ok || string(got) != deep {
		t.Errorf("%d lists in each other give %s", MaxDepth, got)
	}
}

// TestTruncated breaks off Python's output at each byte: there is no panic, and the output
// is JSON if there is one.
func TestTruncated(t *testing.T) {
	in, err := os.ReadFile("testdata/python.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(in) {
		var c struct{ Repr string }
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		for i := range len(c.Repr) {
			if got, ok := JSON([]byte(c.Repr[:i])); ok && !json.Valid(got) {
				t.Errorf("%q gives %q", c.Repr[:i], got)
			}
		}
	}
}

// FuzzJSON: the output is JSON, for any input.
func FuzzJSON(f *testing.F) {
	f.Add([]byte(`{'agent_id': 'agent-1', 'response': ["it's", 'a \'b\'', '\x1b\u20ac\U0001f570', (1, -2.5e3, None)]}`))
	f.Add([]byte(`[TextBlock(text='a\n', at=datetime.datetime(2026, 3, 4, 9, 10, fold=1, tzinfo=datetime.timezone(datetime.timedelta(days=-1, seconds=3600), 'x')))]`))
	f.Add([]byte(`{1: {2, 3}, None: frozenset({b'\xff'}), 'e': <A.B|C: (1, UUID('7'))>, 'n': [nan, -inf]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, ok := JSON(in)
		if !ok {
			return
		}
		if !json.Valid(out) {
			t.Fatalf("%q gives %q", in, out)
		}
		if len(out) > 6*len(in) {
			t.Errorf("%d bytes give %d", len(in), len(out))
		}
	})
}

// TestEitherForm: a text may be JSON or a repr.
func TestEitherForm(t *testing.T) {
	var doc jsonv.Doc
	for text, want := range map[string]bool{`{"a": true}`: true, `{'a': True}`: true, `a tide`: false} {
		if got := Parse(&doc, []byte(text)); got != want || got && !doc.Root().Get("a").Bool() {
			t.Errorf("%s: %v", text, got)
		}
	}
}
