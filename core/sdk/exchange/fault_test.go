package exchange

import (
	"testing"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

func TestFault(t *testing.T) {
	for body, want := range map[string]string{
		`{"code":"rate_limit","type":"requests","message":"slow"}`:    "rate_limit",
		`{"code":null,"type":"requests","message":"slow"}`:            "requests",
		`{"code":400,"type":"BadRequestError","message":"slow"}`:      "BadRequestError",
		`{"code":429,"status":"RESOURCE_EXHAUSTED","message":"slow"}`: "RESOURCE_EXHAUSTED",
		`{"code":502,"message":"slow"}`:                               "502",
		`{"message":"slow"}`:                                          "",
	} {
		var doc jsonv.Doc
		if err := doc.Parse([]byte(body)); err != nil {
			t.Fatal(err)
		}
		if class, text := Fault(doc.Root()); class != want || text.String() != "slow" {
			t.Errorf("%s: %q, %q", body, class, text.String())
		}
	}
}
