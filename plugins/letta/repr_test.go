package letta

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

func TestJSONOfRepr(t *testing.T) {
	for in, want := range map[string]string{
		`{'agent_id': 'agent-1', 'response': ['yes']}`: `{"agent_id":"agent-1","response":["yes"]}`,
		`["it's", 'a "quote"', 'both \' and "']`:       `["it's","a \"quote\"","both ' and \""]`,
		`['\n\t\r\\', '\x1b\xe9\u20ac\U0001f570']`:     `["\n\t\r\\","\u001bé€🕰"]`,
		`(1, -2.5, 3e+20, True, False, None)`:          `[1,-2.5,3e+20,true,false,null]`,
		`('one',)`:                                     `["one"]`,
		` { } `:                                        `{}`,
		`[]`:                                           `[]`,
		`[ [], {}, () ]`:                               `[[],{},[]]`,
		`'só'`:                                         `"só"`,
		strings.Repeat("[", 33) + "]":                  "", // too deep
		``:                                             "",
		`{'a': 1`:                                      "",
		`{'a' 1}`:                                      "",
		`{a: 1}`:                                       "",
		`{1: 2}`:                                       "",
		`['a' 'b']`:                                    "",
		`[,]`:                                          "",
		`['a`:                                          "",
		`'\`:                                           "",
		`'\q'`:                                         "",
		`'\x4'`:                                        "",
		`'\uzzzz'`:                                     "",
		`'\U00110000'`:                                 "",
		"'\n'":                                         "",
		"'\xff'":                                       "",
		`{'a': set()}`:                                 "",
		`__import__('os').system('')`:                  "",
		`1 + 1`:                                        "",
		`[] []`:                                        "",
		`nan`:                                          "",
		`01`:                                           "",
	} {
		got, ok := jsonOfRepr([]byte(in))
		switch {
		case want == "" && ok:
			t.Errorf("%q: got %s, want nothing", in, got)
		case want != "" && string(got) != want:
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
	deep := strings.Repeat("[", maxNesting) + strings.Repeat("]", maxNesting)
	if got, ok := jsonOfRepr([]byte(deep)); !ok || string(got) != deep {
		t.Errorf("%d lists in each other give %s", maxNesting, got)
	}
}

// FuzzRepr: what is taken for Python's is JSON afterwards.
func FuzzRepr(f *testing.F) {
	f.Add([]byte(`{'agent_id': 'agent-1', 'response': ["it's", 'a \'b\'', '\x1b\u20ac\U0001f570', (1, -2.5e3, None)]}`))
	f.Add([]byte(`['a', {'b': [True, False]}]`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, ok := jsonOfRepr(in)
		if !ok {
			return
		}
		var doc jsonv.Doc
		if err := doc.Parse(out); err != nil {
			t.Fatalf("%q gives %q: %v", in, out, err)
		}
		if len(out) > 6*len(in) {
			t.Errorf("%d bytes give %d", len(in), len(out))
		}
	})
}

func TestCompact(t *testing.T) {
	for in, want := range map[string]string{
		`{ "a" : [ 1 , 2.50 , -3e+2 ] , "b" : { } }`:  `{"a":[1,2.50,-3e+2],"b":{}}`,
		`"caf\u00e9 \ud83d\udd70 \/ \" \\ \n \u0007"`: `"café 🕰 / \" \\ \n \u0007"`,
		` [ null , true , false , "" ] `:              `[null,true,false,""]`,
		`{"k\u0065y": "plain"}`:                       `{"key":"plain"}`,
	} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(in)); err != nil {
			t.Fatal(err)
		}
		got := compact(nil, doc.Root())
		if string(got) != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
		var a, b any
		if json.Unmarshal([]byte(in), &a) != nil || json.Unmarshal(got, &b) != nil {
			t.Errorf("%s: %s is no JSON", in, got)
		}
	}
}
