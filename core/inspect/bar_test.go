package inspect

import (
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/blame"
	"github.com/earshot-dev/earshot/core/price"
)

func TestBarIsAsWideAsItShouldBe(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		var s blame.Split
		for b := range s {
			if r.IntN(2) == 0 {
				s[b] = r.Int64N(1e12)
			}
		}
		plain := Bar(s, 20, false)
		if len(plain) != 20 {
			t.Fatalf("%v: %q", s, plain)
		}
		if n := Visible(Bar(s, 20, true)); n != 20 {
			t.Fatalf("%v: %d columns in color", s, n)
		}
		for b, m := range marks {
			if s[b] == 0 && strings.Contains(plain, m.letter) || s[b]*20 >= s.Total() && s[b] > 0 && !strings.Contains(plain, m.letter) {
				t.Fatalf("%v: %q, bucket %s", s, plain, blame.Bucket(b))
			}
		}
	}
}

func TestFold(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"one two three":           "one two|three",
		"abcdefghijklmnop q":      "abcdefghijklmnop|q",
		"\x1b[31mone\x1b[0m  two": "\x1b[31mone\x1b[0m two",
	} {
		if got := strings.Join(Fold(text, 8), "|"); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestForeignTextDoesNotDriveTheTerminal: names come from transcripts.
func TestForeignTextDoesNotDriveTheTerminal(t *testing.T) {
	const evil = "a\x1b[2Jb\r\n\x07"
	tr := &Trace{ID: "t", Works: make(map[string]*Work)}
	tr.add(&Work{Span: blame.Span{ID: "r", Kind: blame.Run, Name: evil, Agent: evil, Start: 1, End: 3e9}, Session: evil, Error: evil, Status: "error", Findings: []string{evil}})
	tr.add(&Work{Span: blame.Span{ID: "d", Parent: "r", Kind: blame.Delegation, Name: evil, Agent: evil, To: evil, Start: 1, End: 2e9}, Status: "running"})
	tr.arrange(price.Default())
	top := &Top{Sources: []SourceLoad{{Source: evil}}, Stuck: []OpenWork{{Name: evil, AgentName: evil, SessionID: evil}}}
	for name, write := range map[string]func(io.Writer, Style) error{
		"waterfall": tr.Waterfall().Write, "explain": tr.Explain().Write, "top": top.Write,
	} {
		var b strings.Builder
		if err := write(&b, Style{}); err != nil {
			t.Fatal(err)
		}
		if b.Len() == 0 || strings.ContainsAny(b.String(), "\x1b\r\x07") {
			t.Errorf("%s: %q", name, b.String())
		}
	}
}

// TestWorkThatRunsPromisesNothing: of a delegation that has no end yet it is not known how much earlier it would have ended without something.
func TestWorkThatRunsPromisesNothing(t *testing.T) {
	for _, status := range []string{"", "running"} {
		tr := &Trace{ID: "t", Works: make(map[string]*Work)}
		tr.add(&Work{Span: blame.Span{ID: "r", Kind: blame.Run, Agent: "a", Start: 1, End: 9e9, Open: status != ""}, Status: status})
		tr.add(&Work{Span: blame.Span{ID: "d", Parent: "r", Kind: blame.Delegation, Agent: "a", To: "b", Start: 1, End: 9e9, Open: status != ""}, Status: status})
		tr.add(&Work{Span: blame.Span{ID: "c", Parent: "d", Kind: blame.Run, Agent: "b", Start: 1, End: 9e9, Open: status != ""}, Status: status})
		tr.add(&Work{Span: blame.Span{ID: "x", Parent: "c", Kind: blame.Tool, Agent: "b", Name: "sonar", Start: 1, End: 8e9}})
		tr.arrange(price.Default())
		d := tr.slow(tr.Tree.Node("d"))
		text := d.Why + " " + strings.Join(tr.Explain().Text, " ")
		promises := strings.Contains(text, "would have") || d.Bottleneck.SavesMS > 0 || strings.Contains(text, " took ") && strings.Contains(text, " to b")
		if !strings.Contains(d.Why, "sonar") || promises == (status == "running") {
			t.Errorf("%q: %v ms, %s", status, d.Bottleneck.SavesMS, text)
		}
	}
}
