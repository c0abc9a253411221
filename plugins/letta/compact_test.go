package letta

import (
	"encoding/json"
	"testing"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

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
