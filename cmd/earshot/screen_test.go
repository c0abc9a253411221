package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/earshot-dev/earshot/core/blame"
	"github.com/earshot-dev/earshot/core/inspect"
)

// hostileText holds sequences that drive a terminal: a window title, a clipboard, C1 as a character and as a
// byte, a line that is written over, and text whose direction changes.
const hostileText = "a\x1b]0;title\x07b\x1b]52;c;ZXZpbA==\x1b\\c\u009b31md\x9b2Je\rf\x08g\u202eh\u2066i\u061cj\x7fk\x00l"

func drivesTerminal(s string) bool {
	for i, r := range s {
		n := 1
		if r != '\uFFFD' || strings.HasPrefix(s[i:], "\uFFFD") {
			n = len(string(r))
		}
		if drives(r, n) {
			return true
		}
	}
	return false
}

func TestScreen(t *testing.T) {
	in := "\x1b[1mbold\x1b[0m \x1b[31mred\x1b[0m ü € 🦊\n" + hostileText + "\x1b[2J\x1b[8mhidden\n"
	whole := ""
	for size := 1; size <= len(in); size++ {
		var b bytes.Buffer
		s := &screen{w: &b}
		for rest := in; len(rest) > 0; {
			n := min(size, len(rest))
			if _, err := s.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if whole == "" {
			whole = b.String()
		}
		if b.String() != whole {
			t.Fatalf("written by %d bytes: %q, by one: %q", size, b.String(), whole)
		}
	}
	if !strings.HasPrefix(whole, "\x1b[1mbold\x1b[0m \x1b[31mred\x1b[0m ü € 🦊\n") {
		t.Errorf("our own colors are gone: %q", whole)
	}
	if rest := whole[strings.Index(whole, "\n"):]; drivesTerminal(rest) {
		t.Errorf("%q", rest)
	}
}

// TestScreenPassesBars: every color of a bar is one of ours.
func TestScreenPassesBars(t *testing.T) {
	var split blame.Split
	for _, b := range blame.Buckets() {
		split[b] = 1e9
	}
	bar := inspect.Bar(split, 21, true)
	var b bytes.Buffer
	if _, err := (&screen{w: &b}).Write([]byte(bar)); err != nil || b.String() != bar || strings.Count(bar, "\x1b[0m") != len(split) {
		t.Errorf("%v: %q is shown as %q", err, bar, b.String())
	}
}

// JSON is JSON with the same values, and does not drive a terminal either.
func TestScreenOfJSON(t *testing.T) {
	want := strings.ToValidUTF8(hostileText, "\uFFFD")
	var b bytes.Buffer
	if err := writeJSON(&screen{w: &b}, want); err != nil {
		t.Fatal(err)
	}
	var got string
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || got != want || drivesTerminal(b.String()) {
		t.Errorf("%v\n%q\n%q", err, b.String(), got)
	}
}

func TestFormulas(t *testing.T) {
	in := "name,n\n\"=1+1\",-5\n\"+a\",+1.5e3\n\"-2\",-inf\n\"@x\",\"a=1\"\n=cmd|' /C calc'!A0,1\n\"\t=1\",\"a \"\"=\"\" b, =c\"\n-1+1,2\r\n\"=last\""
	want := "name,n\n\"'=1+1\",-5\n\"'+a\",+1.5e3\n\"'-2\",-inf\n\"'@x\",\"a=1\"\n'=cmd|' /C calc'!A0,1\n\"'\t=1\",\"a \"\"=\"\" b, =c\"\n'-1+1,2\r\n\"'=last\""
	for size := 1; size <= len(in); size++ {
		var b bytes.Buffer
		f := &formulas{w: &b}
		for rest := in; len(rest) > 0; {
			n := min(size, len(rest))
			if _, err := f.Write([]byte(rest[:n])); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := f.Close(); err != nil || b.String() != want {
			t.Fatalf("by %d bytes: %v\n%q\n%q", size, err, b.String(), want)
		}
	}
}
