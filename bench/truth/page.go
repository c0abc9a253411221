package truth

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Page collects the scores of observers.
type Page struct {
	Formats []string // all that there are; the page names those without a conversation

	observers []string
	scores    map[string]map[string]*Score // by observer and format
	corpus    map[string][]string          // the conversations of a format
	differs   map[string][]string          // by observer, the conversations of which it has something else
	notes     strings.Builder
}

// Add scores an observer's view of a conversation; nil: it does not read it.
func (p *Page) Add(observer string, r *Recorded, got *Conversation) {
	if p.scores == nil {
		p.scores, p.corpus, p.differs = map[string]map[string]*Score{}, map[string][]string{}, map[string][]string{}
	}
	if !slices.Contains(p.corpus[r.Format], r.Name) {
		p.corpus[r.Format] = append(p.corpus[r.Format], r.Name)
	}
	if p.scores[observer] == nil {
		p.observers, p.scores[observer] = append(p.observers, observer), map[string]*Score{}
	}
	if got == nil {
		return
	}
	s := p.scores[observer][r.Format]
	if s == nil {
		s = &Score{}
		p.scores[observer][r.Format] = s
	}
	one := Compare(r.Truth, got)
	if !one.Perfect() {
		p.differs[observer] = append(p.differs[observer], r.Format+"/"+r.Name)
	}
	for _, n := range one.Notes {
		fmt.Fprintf(&p.notes, "%s: %s/%s: %s\n", observer, r.Format, r.Name, n)
	}
	s.Add(one)
}

// Notes are the differences, one a line.
func (p *Page) Notes() string { return p.notes.String() }

const head = `# How true it is

%d invented conversations in %d formats, of which the truth is known, and what observers have of them. Generated:

    %s

An observer of others is installed as [bench/truth/usage.mjs](../bench/truth/usage.mjs) says.

A conversation is a scenario of package [bench/truth](../bench/truth/doc.go), written in each format that can express it, or a
case of a decoder with a ` + "`truth.json`" + ` that a person wrote from its input. The package says what an observer is (any command that prints
a small JSON document) and how it is scored. TestTruth there holds Earshot to precision and recall 1.000 and to no token too many or too few.

The conversations were written by the authors of Earshot, from the same knowledge of the formats as its decoders. The scores show that what is in them is
read as it is; they say nothing of what real traffic has besides.
`

const legend = `
## The tables

A row has the conversations of a format. Calls and links: precision / recall. Tokens: the error and the true sum. Texts: how many are missing and how many
are said once too often, of all. Times: how many are off by more than 1 ms, of all that the traffic tells. A dash: the observer does not tell it, or the format has none.
Earshot with its store reads files, and listens with a tap to traffic that is played to it at once: of formats whose times are those at which a message was heard it has none.
`

const key = `
It reads %d of the %d conversations, and %s.

| format | conversations | calls | links | tokens | texts | times |
|---|---|---|---|---|---|---|
`

// Text is the page in Markdown; command made it.
func (p *Page) Text(command string) string {
	var b strings.Builder
	total := 0
	for _, names := range p.corpus {
		total += len(names)
	}
	fmt.Fprintf(&b, head, total, len(p.corpus), command)
	b.WriteString(legend)
	for _, o := range p.observers {
		var all Score
		var rows strings.Builder
		for _, format := range slices.Sorted(maps.Keys(p.scores[o])) {
			s := p.scores[o][format]
			all.Add(*s)
			row(&rows, format, s)
		}
		fmt.Fprintf(&b, "\n## %s\n"+key+"%s", o, all.Conversations, total, p.verdict(o), &rows)
		row(&b, "**all**", &all)
	}
	b.WriteString("\n## The conversations\n\nThe scenarios are in [bench/truth/scenario.go](../bench/truth/scenario.go). `printed`: as the program of the format prints it, where its files have another form. " +
		"`repeated`: all of it\nis there twice.\n\n| format | conversations |\n|---|---|\n")
	for _, format := range slices.Sorted(maps.Keys(p.corpus)) {
		fmt.Fprintf(&b, "| %s | %s |\n", format, strings.Join(p.corpus[format], ", "))
	}
	if missing := slices.DeleteFunc(slices.Clone(p.Formats), func(f string) bool { return p.corpus[f] != nil }); len(missing) > 0 {
		fmt.Fprintf(&b, "\nWithout a conversation: %s.\n", strings.Join(missing, ", "))
	}
	return b.String()
}

// verdict names the conversations in which an observer differs from the truth.
func (p *Page) verdict(observer string) string {
	if names := p.differs[observer]; len(names) > 0 {
		return "differs from the truth in " + strings.Join(names, ", ")
	}
	return "differs from the truth in none of them"
}

func row(b *strings.Builder, name string, s *Score) {
	rates := func(c Count) string {
		if c.Right+c.Wrong+c.Lacks == 0 {
			return "–"
		}
		return fmt.Sprintf("%.3f / %.3f of %d", c.Precision(), c.Recall(), c.Right+c.Lacks)
	}
	tokens, texts, times := "–", "–", "–"
	if s.Tokens && s.Sum+s.Error > 0 {
		tokens = fmt.Sprintf("%d of %d", s.Error, s.Sum)
	}
	if s.Texts.Scored {
		texts = fmt.Sprintf("%d, %d of %d", s.Texts.Lacks, s.Texts.Wrong, s.Texts.Right+s.Texts.Lacks)
	}
	if n := s.Times.Right + s.Times.Lacks; n > 0 {
		times = fmt.Sprintf("%d of %d", s.Times.Lacks, n)
	}
	fmt.Fprintf(b, "| %s | %d | %s | %s | %s | %s | %s |\n", name, s.Conversations, rates(s.Calls), rates(s.Links), tokens, texts, times)
}
