package truth

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/earshot-dev/earshot/plugins"
)

// TestTruth holds Earshot to every conversation: each call and each link with precision and recall 1, no token more or
// less, no text missing or repeated, and no time off.
func TestTruth(t *testing.T) {
	all, err := Cases(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range append(Written(), all...) {
		t.Run(c.Format+"/"+c.Name, func(t *testing.T) {
			got, err := Rehearse(plugins.Bundled()[c.Format](), c.Streams)
			if err != nil {
				t.Fatal(err)
			}
			for _, n := range Compare(c.Truth, got).Notes {
				t.Error(n)
			}
		})
	}
}

// TestCompare shows that the scores see each way of being wrong.
func TestCompare(t *testing.T) {
	want := func() *Conversation {
		return &Conversation{
			Calls:  []Call{{ID: "a", Name: "read", Start: at(1), End: at(2)}, {ID: "b", Name: "read", Failed: true, Start: at(3), End: at(4)}},
			Links:  []Link{{"a", "b"}},
			Tokens: &Tokens{Input: 10, Output: 5, CacheRead: 85},
			Texts:  []Text{{"user", "Read."}, {"user", "Read."}},
		}
	}
	if s := Compare(want(), want()); !s.Perfect() || s.Calls.Right != 2 || s.Times.Right != 4 || s.Sum != 100 {
		t.Errorf("the truth itself: %+v", s)
	}
	for _, c := range []struct {
		name   string
		change func(*Conversation)
		wrong  func(Score) bool
	}{
		{"no call", func(c *Conversation) { c.Calls = c.Calls[:1] }, func(s Score) bool { return s.Calls.Recall() == 0.5 && s.Calls.Precision() == 1 }},
		{"a call too many", func(c *Conversation) { c.Calls = append(c.Calls, c.Calls[0]) }, func(s Score) bool { return s.Calls.Wrong == 1 && s.Calls.Recall() == 1 }},
		{"not failed", func(c *Conversation) { c.Calls[1].Failed = false }, func(s Score) bool { return s.Calls.Precision() == 0.5 && s.Calls.Recall() == 0.5 }},
		{"another id", func(c *Conversation) { c.Calls[0].ID = "c" }, func(s Score) bool { return s.Calls.Right == 1 }},
		{"a time", func(c *Conversation) { c.Calls[0].End = c.Calls[0].End.Add(2 * time.Millisecond) }, func(s Score) bool { return s.Times.Lacks == 1 && s.Calls.Right == 2 }},
		{"the link turned", func(c *Conversation) { c.Links = []Link{{"b", "a"}} }, func(s Score) bool { return s.Links.Precision() == 0 && s.Links.Recall() == 0 }},
		{"classes exchanged", func(c *Conversation) { c.Tokens.Input, c.Tokens.Output = 5, 10 }, func(s Score) bool { return s.Error == 10 }},
		{"a text once", func(c *Conversation) { c.Texts = c.Texts[1:] }, func(s Score) bool { return s.Texts.Lacks == 1 }},
		{"a text three times", func(c *Conversation) { c.Texts = append(c.Texts, c.Texts[0]) }, func(s Score) bool { return s.Texts.Wrong == 1 }},
	} {
		got := want()
		c.change(got)
		if s := Compare(want(), got); s.Perfect() || !c.wrong(s) {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
	if s := Compare(want(), &Conversation{Tokens: &Tokens{}}); s.Calls.Scored || s.Links.Scored || s.Texts.Scored || s.Error != 100 {
		t.Errorf("tokens alone: %+v", s)
	}
}

// TestEveryScenarioIsWritten finds a scenario that no format can express, and two that write the same.
func TestEveryScenarioIsWritten(t *testing.T) {
	all := Written()
	for _, s := range Scenarios() {
		if !slices.ContainsFunc(all, func(r Recorded) bool { return r.Name == s.Name }) {
			t.Errorf("%s is in no format", s.Name)
		}
	}
}

// TestPage holds docs/truth.md to the scores of the decoders; go run ./bench/cmd/truth writes it.
func TestPage(t *testing.T) {
	all, err := Cases(os.DirFS("../.."))
	if err != nil {
		t.Fatal(err)
	}
	var p Page
	for _, c := range append(Written(), all...) {
		got, err := Rehearse(plugins.Bundled()[c.Format](), c.Streams)
		if err != nil {
			t.Fatal(err)
		}
		p.Add("Earshot's decoders", &c, got)
	}
	page, err := os.ReadFile("../../docs/truth.md")
	if err != nil {
		t.Fatal(err)
	}
	_, command, _ := strings.Cut(string(page), "\n    ")
	command, _, _ = strings.Cut(command, "\n")
	for line := range strings.Lines(p.Text(command)) {
		if !strings.Contains(string(page), line) {
			t.Errorf("docs/truth.md is of another build: it has no %s", line)
		}
	}
}
