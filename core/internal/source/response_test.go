package source

import (
	"strings"
	"testing"
)

func TestParseResponseInfo(t *testing.T) {
	for state, want := range map[string]bool{
		``: false, `over`: false, `[]`: false, `{}`: false, `{"last_id":"7"}`: false, `{"timing":7}`: false,
		`{"timing":{"start":1}}`: true, `{"traceparent":"x","last_id":"7"}`: true,
	} {
		if _, ok := ParseResponseInfo([]byte(state)); ok != want {
			t.Errorf("%s: %v", state, ok)
		}
	}
}

func TestRemote(t *testing.T) {
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	for in, want := range map[string]bool{
		"00-" + trace + "-" + span + "-01":                    true,
		"01-" + trace + "-" + span + "-00-more":               true,
		"00-" + trace + "-" + span + "-00-more":               false,
		"01-" + trace + "-" + span + "-00more":                false,
		"ff-" + trace + "-" + span + "-01":                    false,
		"00-" + strings.Repeat("0", 32) + "-" + span + "-01":  false,
		"00-" + trace + "-" + strings.Repeat("0", 16) + "-01": false,
		"00-" + trace + "-" + span[:15] + "g-01":              false,
		"00-" + trace + "-" + span:                            false,
		"00_" + trace + "-" + span + "-01":                    false,
		"":                                                    false,
		strings.Repeat("é", 40):                               false,
	} {
		f := ResponseInfo{Traceparent: in}
		gotTrace, gotSpan := f.Remote()
		if ok := !gotTrace.IsZero() && !gotSpan.IsZero(); ok != want || gotTrace.IsZero() != gotSpan.IsZero() {
			t.Errorf("%s: %v", in, ok)
		} else if ok && (gotTrace.String() != trace || gotSpan.String() != span) {
			t.Errorf("%s: %s %s", in, gotTrace, gotSpan)
		}
	}
}
