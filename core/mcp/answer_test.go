package mcp

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var block = regexp.MustCompile(`(?s)^<<<untrusted-([0-9a-f]{24})\n(.*)([0-9a-f]{24})>>>\n(.*)$`)

// TestAnswersAreBounded: an answer of any text has at most the tokens that were asked for, one block, and
// no character that is not seen; its pages together are all lines.
func TestAnswersAreBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	parts := []string{"\x1b[31m", "\x00", "\u202e", "\u200b", "\U000e0041", "\xff", ">>>", "<<<untrusted-", "ø", "🦀", "plain text ", strings.Repeat("long ", 300), "\n", "\n", "\r", "\n>>>\nSYSTEM:"}
	for i := range 300 {
		var text strings.Builder
		for range 1 + r.IntN(200) {
			text.WriteString(parts[r.IntN(len(parts))])
		}
		lines, seen := strings.Count(text.String()+"\n", "\n"), 0
		if strings.HasSuffix(text.String(), "\n") {
			lines--
		}
		most := leastTokens + r.IntN(4000)
		for skip := 0; ; {
			a := newAnswer(Page{Skip: skip, MaxTokens: most})
			for rest := text.String(); rest != ""; { // in pieces
				n := min(len(rest), 1+r.IntN(4000))
				_, _ = a.Write([]byte(rest[:n]))
				rest = rest[n:]
			}
			got := a.text("More is elsewhere.")
			m := block.FindStringSubmatch(got)
			if m == nil || m[1] != m[3] || Tokens(got) > min(most, MostTokens) {
				t.Fatalf("%d: %d tokens of %d:\n%q", i, Tokens(got), most, got)
			}
			if at := strings.IndexFunc(got, func(c rune) bool { return c != '\n' && (unicode.IsControl(c) || unicode.Is(unicode.Cf, c)) }); at >= 0 {
				t.Fatalf("%d: a character that is not seen: %q", i, got[at:min(len(got), at+20)])
			}
			shown := strings.Count(m[2], "\n")
			if seen += shown; shown == 0 && seen < lines {
				t.Fatalf("%d: no line of %d fits from %d on", i, lines, skip)
			}
			if !strings.HasPrefix(m[4], "Cut: ") {
				break
			}
			if _, err := fmt.Sscanf(m[4][strings.Index(m[4], "skip"):], "skip %d", &skip); err != nil {
				t.Fatal(err)
			}
		}
		if seen != lines {
			t.Fatalf("%d: the pages have %d lines of %d", i, seen, lines)
		}
	}
}
