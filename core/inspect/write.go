package inspect

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/earshot-dev/earshot/core/blame"
)

// Style is the form of a printed conversation.
type Style struct {
	Color bool
	Width int            // columns; 100 when zero
	Full  bool           // whole texts instead of their beginnings
	Zone  *time.Location // of times; UTC when nil
}

// zone is that of times.
func (st Style) zone() *time.Location {
	if st.Zone == nil {
		return time.UTC
	}
	return st.Zone
}

// WriteSession draws a session as a tree, turn after turn as they are read: for each
// the user's prompt, the steps behind the scenes, and the answer.
func WriteSession(ctx context.Context, w io.Writer, q Querier, id Ref, st Style) error {
	if st.Width <= 0 {
		st.Width = 100
	}
	texts := ShortTexts
	if st.Full {
		texts = LongTexts
	}
	lines := bufio.NewWriter(w)
	p := &printer{w: lines, Style: st}
	n := 0
	err := Each(ctx, q, id, texts, func(s *Session) error {
		p.format = s.Format
		facts := []string{s.Format, plural(int(s.Turns), "turn"), Span(s.Last.Sub(s.Started))}
		if s.Tokens > 0 { // else none are known
			facts = append(facts, tokens(s.Tokens))
		}
		if id, line := p.bold("session "+printable(s.ID)), strings.Join(facts, " · "); Visible(id)+2+Visible(line) > st.Width {
			p.line("", id)
			p.line("  ", line)
		} else {
			p.line("", id, "  ", line)
		}
		if s.Shares != "" {
			p.line("  ", "shares turns with ", printable(s.Shares), ", where they count")
		}
		return p.err
	}, func(t *Turn) error {
		if !t.Outside() {
			n++
		}
		p.turn(t, n)
		return p.err
	})
	return cmp.Or(err, lines.Flush())
}

type printer struct {
	Style
	w      io.Writer
	format string // of the session
	err    error
}

func (p *printer) line(indent string, parts ...string) {
	if p.err == nil {
		_, p.err = fmt.Fprintln(p.w, strings.TrimRight(indent+strings.Join(parts, ""), " "))
	}
}

// folded writes a text in lines that fit the style; one where it has no width.
func (p *printer) folded(indent, text string) {
	for _, l := range Fold(text, max(0, p.Width-len(indent))) {
		p.line(indent, l)
	}
}

func (p *printer) turn(t *Turn, n int) {
	var spent Tokens
	if t.Root != nil {
		spent = t.Root.total()
	}
	head := fmt.Sprintf("turn %d", n)
	if t.Outside() {
		head = "outside of any turn"
	}
	p.line("", "")
	facts := []string{Stamp(t.Started, p.zone())}
	if t.Root != nil {
		facts = append(facts, Span(t.Root.Duration))
		if t.Agent != "" {
			facts = append(facts, printable(t.Agent))
		}
		if spent.Total() > 0 {
			facts = append(facts, tokens(spent.Total()))
		}
		if t.Root.Status != "" || t.Root.Error != "" {
			facts = append(facts, p.ended(t.Root))
		}
		facts = append(p.seen(facts, t.Root), fmt.Sprintf("trace %.8s", t.TraceID))
	}
	if line := strings.Join(facts, " · "); Visible(head)+2+Visible(line) > p.Width {
		p.line("", p.bold(head))
		for _, l := range Fold(line, p.Width-2) {
			p.line("  ", p.dim(l))
		}
	} else {
		p.line("", p.bold(head), "  ", p.dim(line))
	}
	if t.Prompt != "" {
		p.text("", p.cyan("user      "), t.Prompt)
	}
	if len(t.Steps) > 0 {
		if t.Root != nil {
			p.line("", p.dim(fmt.Sprintf("behind the scenes (%s)", plural(count(t.Steps), "step"))))
		}
		tree := t.Tree()
		p.steps(t.Steps, "", t.Started, tree)
		for _, note := range ClockNotes(tree) {
			p.folded("", printable("By the clocks, "+note+"."))
		}
	}
	if t.Answer != "" {
		p.text("", p.green("answer    "), t.Answer)
	}
}

// shownElsewhere bounds the runs of other sessions that a call shows: it may have been sent to all agents.
const shownElsewhere = 8

func (p *printer) steps(list []*Step, indent string, zero time.Time, tree *blame.Tree) {
	for i, s := range list {
		branch, below := "├─ ", "│  "
		if i == len(list)-1 {
			branch, below = "└─ ", "   "
		}
		p.step(s, indent+branch, indent+below, startOf(s, tree).Sub(zero))
		p.steps(s.Steps, indent+below, zero, tree)
	}
}

// startOf is when a step began, by the clock of the turn.
func startOf(s *Step, tree *blame.Tree) time.Time {
	if n := tree.Node(s.SpanID); n != nil {
		return time.Unix(0, n.Start)
	}
	return s.Started
}

func (p *printer) step(s *Step, first, rest string, since time.Duration) {
	at := p.dim(fmt.Sprintf("%8s ", after(since)))
	name, what := printable(s.Name), ""
	switch s.Kind {
	case "chat":
		what = "chat " + name
	case "tool":
		what = "tool " + p.bold(name)
	case "delegation":
		what = "delegation " + p.bold("→ "+Delegate(printable(s.To))) + p.dim(" ("+name+")")
	case "run", "workflow":
		what = "agent " + p.bold(Agent(name, printable(p.format)))
		if s.Link != "" {
			what += p.dim(" linked by " + s.Link)
		}
	default:
		what = name
	}
	var facts []string
	if s.Kind != "message" {
		facts = append(facts, Span(s.Duration)+s.of(s.Times))
	}
	if t := s.Tokens; t.Total() > 0 {
		facts = append(facts, tokens(t.Total())+s.of(s.Origins.Tokens))
	}
	if s.Status != "" || s.Error != "" {
		facts = append(facts, p.ended(s)+s.of(s.Origins.Status))
	}
	facts = p.seen(facts, s)
	if !p.Full { // names may be of any length; their facts are not
		line := strings.Join(facts, " · ")
		if room := max(16, p.Width-Visible(first)-Visible(at)-2-Visible(line)); Visible(what) > room {
			what = Clip(Plain(what), room)
		}
	}
	p.line(first, at, what, "  ", p.dim(strings.Join(facts, " · ")))
	pad := rest + strings.Repeat(" ", 9)
	if len(s.Steps) > 0 {
		pad = rest + "│" + strings.Repeat(" ", 8)
	}
	switch s.Kind {
	case "tool", "delegation":
		if s.Hop != nil {
			p.line(pad, p.dim("hop "), p.dim(printable(strings.TrimSpace(s.Hop.Agent+" "+s.Hop.text()))))
		}
		for i := range s.Elsewhere[:min(len(s.Elsewhere), shownElsewhere)] {
			p.line(pad, p.dim("run "), p.dim(printable(s.Elsewhere[i].text())))
		}
		if more := len(s.Elsewhere) - shownElsewhere; more > 0 {
			p.line(pad, p.dim(fmt.Sprintf("and %s in other sessions", plural(more, "run"))))
		}
		p.text(pad, p.dim("in  "), s.Input)
		p.text(pad, p.dim("out "), s.Output)
	case "run", "workflow":
		p.text(pad, p.dim("in  "), s.Input)
	default:
		p.text(pad, p.dim("…   "), s.Thoughts)
		p.text(pad, "", s.Output)
	}
}

// seen adds the formats that show a step, if they are several, and the counts on which they differ.
func (p *printer) seen(facts []string, s *Step) []string {
	if len(s.SeenBy) > 0 {
		facts = append(facts, "seen by "+printable(strings.Join(s.SeenBy, ", ")))
	}
	for _, m := range s.Seen {
		if m.Kind != "usage" && !slices.Equal(m.By, s.SeenBy) {
			facts = append(facts, printable(strings.ReplaceAll(m.Kind, "_", " "))+" seen by "+printable(strings.Join(m.By, ", ")))
		}
	}
	if s.Conflict != "" {
		facts = append(facts, p.bad("tokens differ: "+printable(s.Conflict)))
	}
	return facts
}

// of names the format that a number is of, if that is another than the row's.
func (s *Step) of(format string) string {
	if len(s.SeenBy) == 0 || format == s.SeenBy[0] {
		return ""
	}
	return " of " + printable(format)
}

// text writes a text, folded to one line unless all of it is wanted.
func (p *printer) text(indent, label, s string) {
	if s == "" {
		return
	}
	if !p.Full {
		room := max(20, p.Width-Visible(indent)-10)
		p.line(indent, label, p.plain(Clip(s, room)))
		return
	}
	for i, l := range strings.Split(strings.TrimRight(s, "\n"), "\n") {
		if i > 0 {
			label = strings.Repeat(" ", Visible(label))
		}
		p.line(indent, label, printable(l))
	}
}

func (p *printer) plain(s string) string { return s }
func (p *printer) paint(code, s string) string {
	if !p.Color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// ended is how a step ended, with the reason: a step that a person stopped or denied is no failure.
func (p *printer) ended(s *Step) string {
	text := s.Status
	if s.Error != s.Status {
		text += " " + s.Error
	}
	text = printable(strings.TrimSpace(text))
	if s.Status == "cancelled" {
		return text
	}
	return p.bad(text)
}

func (p *printer) bold(s string) string  { return p.paint("1", s) }
func (p *printer) dim(s string) string   { return p.paint("2", s) }
func (p *printer) bad(s string) string   { return p.paint("31", s) }
func (p *printer) green(s string) string { return p.paint("32", s) }
func (p *printer) cyan(s string) string  { return p.paint("36", s) }

// sequence matches terminal control sequences: colors, cursor, window title.
var sequence = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)|[PX^_][^\x1b]*\x1b\\\\|[ -/]*[0-~])")

// Plain takes out the sequences that drive a terminal.
func Plain(s string) string {
	if strings.IndexByte(s, '\x1b') < 0 {
		return s
	}
	return sequence.ReplaceAllString(s, "")
}

// printable removes terminal control sequences: a transcript is untrusted text.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case r < 0x20 || r == 0x7f || 0x80 <= r && r < 0xa0 || r == utf8.RuneError || 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069:
			return '·'
		}
		return r
	}, Plain(s))
}

// total is the tokens of a step and everything below it.
func (s *Step) total() Tokens {
	sum := s.Tokens
	for _, c := range s.Steps {
		sum.add(c.total())
	}
	return sum
}

func count(list []*Step) int {
	n := len(list)
	for _, s := range list {
		n += count(s.Steps)
	}
	return n
}

// Stamp writes a time in a zone, UTC when it is nil, and which zone it is.
func Stamp(t time.Time, zone *time.Location) string {
	if zone == nil {
		zone = time.UTC
	}
	return t.In(zone).Format("2006-01-02 15:04:05 MST")
}

// Span formats a duration as a person would write it.
func Span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + Span(-d)
	case d < time.Second:
		return fmt.Sprintf("%dms", d.Milliseconds())
	case d < 9950*time.Millisecond: // more is ten, rounded
		return fmt.Sprintf("%.1fs", d.Seconds())
	case d < 59500*time.Millisecond:
		return fmt.Sprintf("%.0fs", d.Seconds())
	case d < time.Minute:
		return "1m00s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

func tokens(n uint64) string {
	switch {
	case n == 1:
		return "1 token"
	case n < 10_000:
		return fmt.Sprintf("%d tokens", n)
	case n < 9_999_500:
		return fmt.Sprintf("%.0fk tokens", float64(n)/1e3)
	}
	return fmt.Sprintf("%.0fM tokens", float64(n)/1e6)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
