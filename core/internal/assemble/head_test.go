package assemble

import (
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/msg"
)

// The head of a long text is that of all of it, wherever its bytes are cut.
func TestHead(t *testing.T) {
	for _, unit := range []string{"a", `\n`, `\u00e9`, `\ud83d\ude00`, `x\"y`, "é", "\xff"} {
		for n := range 7 {
			raw := []byte(strings.Repeat("x", n) + strings.Repeat(unit, 2000))
			for _, text := range []msg.Text{msg.Quoted(raw), msg.Raw(raw)} {
				want := strings.ToValidUTF8(text.String()[:256], "")
				if got := head(text); got != want {
					t.Errorf("%d %q: %q, want %q", n, unit, got, want)
				}
			}
		}
	}
	if got := head(msg.Quoted([]byte(`short\n`))); got != "short\n" {
		t.Errorf("%q", got)
	}
}
