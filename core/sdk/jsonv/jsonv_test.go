package jsonv

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func parse(t testing.TB, s string) Value {
	t.Helper()
	var d Doc
	if err := d.Parse([]byte(s)); err != nil {
		t.Fatalf("%s: %v", s, err)
	}
	return d.Root()
}

func TestValues(t *testing.T) {
	v := parse(t, ` {"a":"x\ny","b":[1,-2.5e3,true,false,null,{"c":{}}],"é":"\u00e9\ud83d\ude00\ud800","b2":[],"dup":1,"dup":2,"\u0064":9007199254740993} `)
	for _, c := range []struct{ what, got, want string }{
		{"string", v.Get("a").Str(), "x\ny"},
		{"raw string", string(v.Get("a").Raw()), `"x\ny"`},
		{"text of an array", v.Get("b").Text().String(), `[1,-2.5e3,true,false,null,{"c":{}}]`},
		{"surrogates", v.Get("é").Str(), "é😀\uFFFD"},
		{"int", fmt.Sprint(v.Get("dup").Int()), "2"},
		{"escaped key", fmt.Sprint(v.Get("d").Int()), "9007199254740993"},
		{"lengths", fmt.Sprint(v.Len(), v.Get("b").Len(), v.Get("b2").Len(), v.Get("a").Len()), "7 6 0 0"},
		{"missing", fmt.Sprint(v.Get("nope").Get("x").Str(), v.Path("b", "c").Exists(), v.Get("a").Get("b").Kind()), "false nothing"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, c.got, c.want)
		}
	}
	var kinds []string
	for e := range v.Get("b").Elems() {
		kinds = append(kinds, fmt.Sprint(e.Kind(), e.Int(), e.Float(), e.Bool(), e.Exists()))
	}
	if got, want := strings.Join(kinds, ";"), "number 1 1 false true;number -2500 -2500 false true;boolean 0 0 true true;boolean 0 0 false true;null 0 0 false false;object 0 0 false true"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The text of a plain string lies in the input: nothing is copied before the row.
func TestTextAliasesInput(t *testing.T) {
	in := []byte(`{"a":"plain","b":{"c":1}}`)
	var d Doc
	if err := d.Parse(in); err != nil {
		t.Fatal(err)
	}
	for key, at := range map[string]int{"a": 6, "b": 17} {
		if raw, _ := d.Root().Get(key).Text().Alias(); &raw[0] != &in[at] {
			t.Errorf("%s was copied", key)
		}
	}
}

func TestSyntaxErrors(t *testing.T) {
	for in, want := range map[string]string{
		``:                              "unexpected end at byte 0",
		`{"a":1`:                        "unexpected end at byte 6",
		`{"a":1}}`:                      "data after the value at byte 7",
		`{"a":1,}`:                      "expected a key at byte 7",
		`{"a" 1}`:                       "expected a colon at byte 5",
		`[1,]`:                          "unexpected character at byte 3",
		`[01]`:                          "unexpected character at byte 2",
		"\"a\x00b\"":                    "control character in a string at byte 2",
		`"a\x"`:                         "invalid escape at byte 2",
		"\"long enough \xff x\"":        "invalid UTF-8 in a string at byte 1",
		`"abc`:                          "unexpected end in a string at byte 4",
		`nul`:                           "unexpected character at byte 0",
		strings.Repeat("[", MaxDepth+1): fmt.Sprintf("nested too deep at byte %d", MaxDepth),
	} {
		var d Doc
		err := d.Parse([]byte(in))
		if err == nil || err.Error() != want {
			t.Errorf("%.40s: got %v, want %s", in, err, want)
		}
		if d.Root().Kind() != Missing {
			t.Errorf("%.40s: a root after an error", in)
		}
	}
}

func TestParts(t *testing.T) {
	v := parse(t, `{"a":null,"b":"x\ny","c":"plain","d":[1],"e":-1.50,"f":`+strings.Repeat("1", 33)+`}`)
	for _, c := range []struct{ what, got, want string }{
		{"first", string(v.First("nope", "a", "c", "b").Peek()), `"plain"`},
		{"none", v.First("nope", "a").Kind().String(), "nothing"},
		{"chars", string(v.Get("b").Chars()), "x\ny"},
		{"escaped", string(v.Get("b").Escaped()), `x\ny`},
		{"of an array", string(v.Get("d").Chars()) + string(v.Get("d").Escaped()), ""},
		{"digits", v.Get("e").Digits() + v.Get("c").Digits() + v.Get("f").Digits(), "-1.50"},
		{"prefix", fmt.Sprint(v.Get("c").HasPrefix("pl"), v.Get("c").HasPrefix("plains"), v.Get("d").HasPrefix("")), "true false true"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.what, c.got, c.want)
		}
	}
	if n := len(v.d.Unread(1, func([]string) bool { return false })); n == 0 {
		t.Error("a look counts as read")
	}
}

// Every strict prefix of a document is an error, never a panic.
func TestNoShortRead(t *testing.T) {
	in := `{"a":[1.5e-3,"x\u00e4\\",{"b":null},true],"c":"日本語 and more text"}`
	var d Doc
	for i := range len(in) {
		if d.Parse([]byte(in[:i])) == nil {
			t.Errorf("prefix of %d bytes was accepted", i)
		}
	}
	if err := d.Parse([]byte(in)); err != nil {
		t.Error(err)
	}
}

// Every pair of first bytes, every sequence of bytes at the bounds of the rules,
// and runes of all planes, at each distance from the words that the scan reads.
func TestUTF8LikeTheStandardLibrary(t *testing.T) {
	check := func(pad int, seq ...byte) {
		for _, after := range []string{"yyyyyyyy\"", "\"       ", "\\n\"      "} {
			in := append(append(append([]byte{'"'}, "xxxxxxx"[:pad]...), seq...), after...)
			var d Doc
			if err := d.Parse(in); (err == nil) != utf8.Valid(in) {
				t.Fatalf("%q: got %v", in, err)
			}
		}
	}
	first := []byte{0x7f, 0x80, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff}
	later := []byte{'x', 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc2, 0xe1, 0xff}
	for a := 0x80; a < 0x100; a++ {
		for b := range 0x100 {
			if b != '"' && b != '\\' && b >= 0x20 {
				check(a%8, byte(a), byte(b), 0x80)
			}
		}
	}
	for pad := range 8 {
		for _, cut := range []string{"\xc3", "\xe2", "\xe2\x80", "\xf0", "\xf0\x90", "\xf0\x90\x80"} {
			check(pad, []byte(cut)...)
		}
		for _, a := range first {
			for _, b := range later {
				for _, c := range later {
					for _, e := range later {
						check(pad, a, b, c, e)
					}
				}
			}
		}
	}
	for r := rune(0x80); r <= utf8.MaxRune; r += 61 {
		check(int(r)%8, []byte(string(r))...)
	}
}

// To be compared with a word, a long text is not decoded.
func TestEqualAllocatesNothingForOtherTexts(t *testing.T) {
	v := parse(t, `"`+strings.Repeat(`\n`, 1000)+`"`)
	if n := testing.AllocsPerRun(10, func() {
		if v.Equal("Assistant response") {
			t.Error("equal")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for in, want := range map[string]string{`"\u0061\u0062"`: "ab", `"\ud83d\ude00"`: "😀", `"\ud800"`: "\uFFFD", `"\n"`: "\n"} {
		if !parse(t, in).Equal(want) || parse(t, in).Equal(want+"x") {
			t.Errorf("%s is not %q", in, want)
		}
	}
}

func TestKeyBytes(t *testing.T) {
	var got []string
	for k := range parse(t, `{"plain":1,"\u0065sc\"aped":2,"":3}`).Members() {
		got = append(got, string(k.Bytes()))
	}
	if want := "plain|esc\"aped|"; strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
}

func FuzzAgainstEncodingJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e+1,"x\n\u00e4",null]}`, `"\ud800\udc00"`, `[[],{}]`, `-0.0`, ` true `, "\"\xff\"", `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var d Doc
		err := d.Parse(in)
		if want := json.Valid(in) && utf8.Valid(in) && depth(in) <= MaxDepth; (err == nil) != want {
			t.Fatalf("%q: got %v, encoding/json says %v", in, err, want)
		}
		if err != nil {
			return
		}
		var want any
		dec := json.NewDecoder(bytes.NewReader(in))
		dec.UseNumber()
		if err := dec.Decode(&want); err != nil {
			t.Fatal(err)
		}
		same(t, d.Root(), want)
	})
}

func depth(in []byte) (most int) {
	n, inString := 0, false
	for i := 0; i < len(in); i++ {
		switch c := in[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case !inString && (c == '[' || c == '{'):
			n++
			most = max(most, n)
		case !inString && (c == ']' || c == '}'):
			n--
		}
	}
	return most
}

func same(t *testing.T, v Value, want any) {
	t.Helper()
	switch want := want.(type) {
	case nil:
		if v.Kind() != Null {
			t.Fatalf("%s is not null", v.Raw())
		}
	case bool:
		if v.Bool() != want || v.Kind() != True && v.Kind() != False {
			t.Fatalf("%s is not %v", v.Raw(), want)
		}
	case json.Number:
		if string(v.Raw()) != string(want) || v.Kind() != Number {
			t.Fatalf("%s is not %v", v.Raw(), want)
		}
	case string:
		if v.Str() != want || !v.Equal(want) {
			t.Fatalf("%s is not %q", v.Raw(), want)
		}
	case []any:
		i := 0
		for e := range v.Elems() {
			same(t, e, want[i])
			i++
		}
		if i != len(want) {
			t.Fatalf("%s has %d elements, want %d", v.Raw(), i, len(want))
		}
	case map[string]any:
		for key, w := range want {
			same(t, v.Get(key), w)
		}
		for k := range v.Members() {
			if _, ok := want[k.String()]; !ok {
				t.Fatalf("%s: key %q is not there", v.Raw(), k)
			}
		}
	}
}

func line() []byte {
	content := strings.Repeat("The quick brown fox said \\\"jump\\\" and left a note:\\n- one line of it\\n", 20)
	return []byte(`{"type":"assistant","content":"` + content + `","timestamp":1761073198.2721586,"metadata":{"tool_uses":[{"id":"toolu_01","name":"Read","input":{"path":"/tmp/x","limit":200},"timestamp":1761073198.27}],"has_tool_uses":true,"model":"some-model-1","session_id":"0801e1da"},"session_id":"0801e1da"}`)
}

func BenchmarkLine(b *testing.B) {
	in := line()
	b.Run("jsonv", func(b *testing.B) {
		b.SetBytes(int64(len(in)))
		b.ReportAllocs()
		var d Doc
		for b.Loop() {
			if err := d.Parse(in); err != nil {
				b.Fatal(err)
			}
			v := d.Root()
			_, _, _ = v.Get("content").Text(), v.Get("timestamp").Raw(), v.Path("metadata", "model").Text()
		}
	})
	b.Run("encoding_json", func(b *testing.B) {
		b.SetBytes(int64(len(in)))
		b.ReportAllocs()
		for b.Loop() {
			var v struct {
				Content   string
				Timestamp json.Number
				Metadata  struct{ Model string }
			}
			if err := json.Unmarshal(in, &v); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// TestParseFirst: the rest after a document is returned, and the document is that of Parse without the rest.
func TestParseFirst(t *testing.T) {
	for _, c := range []struct{ in, first, rest string }{
		{`{"a":[1]} {"b":2}`, `{"a":[1]}`, `{"b":2}`}, {` "x"y`, `"x"`, `y`}, {`1`, `1`, ``}, {"[]\n\n", `[]`, ``}, {`{}}`, `{}`, `}`},
	} {
		var d Doc
		rest, err := d.ParseFirst([]byte(c.in))
		if got := string(d.Root().Raw()); err != nil || got != c.first || string(rest) != c.rest {
			t.Errorf("%s: %q, rest %q, %v", c.in, got, rest, err)
		}
		if err := d.Parse([]byte(c.in)); (err == nil) != (c.rest == "") || err != nil && d.Root().Exists() {
			t.Errorf("%s: Parse reports %v", c.in, err)
		}
	}
	for _, in := range []string{``, `{"a":1`, `{]`, `nul`} {
		if rest, err := new(Doc).ParseFirst([]byte(in)); err == nil {
			t.Errorf("%q: rest %q", in, rest)
		}
	}
}

func TestEach(t *testing.T) {
	for in, want := range map[string]string{`[1,"b"]`: `1 "b" `, `{"a":1}`: `{"a":1} `, `[]`: "", `7`: "7 "} {
		var d Doc
		if err := d.Parse([]byte(in)); err != nil {
			t.Fatal(err)
		}
		got := ""
		for v := range Each(d.Root()) {
			got += string(v.Raw()) + " "
		}
		if got != want {
			t.Errorf("%s: %q, want %q", in, got, want)
		}
	}
}

// TestOr: the next value takes the place of one that is missing or null, and of no other.
func TestOr(t *testing.T) {
	var d Doc
	if err := d.Parse([]byte(`{"null":null,"false":false,"empty":"","other":7}`)); err != nil {
		t.Fatal(err)
	}
	other := d.Root().Get("other")
	for name, want := range map[string]string{"null": "7", "missing": "7", "false": "false", "empty": `""`} {
		if got := string(Or(d.Root().Get(name), other).Peek()); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestWord: a word that is known counts as read and allocates nothing; any other string is kept.
func TestWord(t *testing.T) {
	var d Doc
	if err := d.Parse([]byte(`{"a":"content-filtered-by-them","b":"another word that nobody knows"}`)); err != nil {
		t.Fatal(err)
	}
	var a, b string
	if n := testing.AllocsPerRun(10, func() {
		a = Word(d.Root().Get("a"), "stop", "content-filtered-by-them")
		b = Word(d.Root().Get("b"), "stop", "content-filtered-by-them")
	}); n != 0 || a != "content-filtered-by-them" || b != "" {
		t.Errorf("%q and %q with %v allocations", a, b, n)
	}
	if rest := d.Unread(1, func([]string) bool { return false }); len(rest) != 1 || rest[0].Path[0] != "b" {
		t.Errorf("unread: %v", rest)
	}
}
