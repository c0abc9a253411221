package gen

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
)

// session generates one minion's conversation.
type session struct {
	o    Options
	pool *pool
	rng  *rand.Rand

	id      string
	out     []byte
	account Account
	now     int64 // ns
	marks   int
	turns   int

	upgrade    int  // the turn from which the writer is of generation 2
	lifecycle  bool // and of generation 3
	tagged     bool // it writes the type of content blocks
	split      bool // a line for each block
	model      []byte
	line       line
	background *call // a sub-agent that works on while the turn has ended
}

func newSession(o Options, p *pool, rng *rand.Rand, n int) *session {
	s := &session{o: o, pool: p, rng: rng}
	s.now = o.Start.UnixNano() + int64(n)*int64(o.Every)
	s.id = s.uuid()
	switch share := rng.Float64(); {
	case share < 0.45:
		s.upgrade = 1 << 30 // never
	case share < 0.65:
		s.upgrade = 1 + rng.IntN(12)
	}
	s.lifecycle, s.tagged, s.split = s.chance(0.5), s.chance(0.3), s.chance(0.5)
	s.model = []byte([]string{"claude-sonnet-4-5-20250929", "claude-opus-4-1-20250805", "claude-haiku-4-5-20251001"}[rng.IntN(3)])
	return s
}

func (s *session) stored() bool { return s.turns > s.upgrade }

// generate continues until the session has that many bytes.
func (s *session) generate(bytes int64) {
	s.system("client_launched", "Claude Code Launched", "status", true)
	for int64(len(s.out)) < bytes {
		s.turn()
	}
	s.account.Bytes = int64(len(s.out))
}

// turn writes a prompt, the responses to it, and the end.
func (s *session) turn() {
	s.turns++
	s.advance(4 * time.Second)
	s.account.Runs++
	s.prompt()
	t := &turn{session: s}
	t.preamble()
	for steps := s.rng.IntN(9); steps > 0; steps-- {
		t.respond(true)
	}
	switch share := s.rng.Float64(); {
	case share < 0.03:
		t.interrupt()
	case share < 0.05 && s.background == nil: // the next prompt arrives before the end
		t.countTokens()
	default:
		t.respond(false)
		t.result()
	}
	if s.background != nil {
		s.resume()
	}
}

// resume writes the turn without a prompt that begins when a sub-agent in the background has
// its answer.
func (s *session) resume() {
	c := s.background
	s.background = nil
	c.runSubAgent(1 + s.rng.IntN(2))
	c.notify()
	s.account.Runs++
	t := &turn{session: s}
	t.preamble()
	t.respond(false)
	t.result()
}

var minions = []string{"heron", "wren", "old crow", "newt", "Größe", "灯塔"}

// prompt writes a message of a human or of another minion.
func (s *session) prompt() {
	text := s.text(150, false)
	if s.chance(0.25) {
		title := []string{"📋 Task", "❓ Question", "📊 Report", "💡 Info", "💬 Message"}[s.rng.IntN(5)]
		from := append([]string{"user"}, minions...)[s.rng.IntN(1+len(minions))]
		text = fmt.Appendf(nil, "**%s from Minion #%s:** in short\n\n%s", title, from, text)
	}
	l := s.begin("user", s.chance(0.8))
	l.str("content", text)
	s.end()
	s.account.Message("user", text)
}

// system writes a notice of generation 1.
func (s *session) system(subtype, text, kind string, shown bool) {
	l := s.begin("system", s.chance(0.8))
	l.str("content", []byte(text)).key("metadata").open('{')
	l.str("subtype", []byte(subtype)).str("session_id", []byte(s.id))
	l.raw("tools", "[]").raw("model", "null").raw("has_tool_uses", "false").close('}')
	s.end()
	var content []byte
	if shown {
		content = []byte(text)
	}
	s.account.Message(kind, content)
}

// rareLine writes one of the rare lines, now and then.
func (s *session) rareLine() {
	switch n := s.rng.IntN(400); n {
	case 0, 1:
		s.system("hook_response", "", "status", false)
	case 2:
		s.system("compact_boundary", "", "status", false)
	case 3:
		s.system("api_retry", "API retry 1/3 (~2s)", "status", true)
	case 4:
		s.system("status", "System status: "+s.id, "status", false)
	case 5:
		s.system("local_command_response", "Lamps: 7 of 12\n\"lit\"", "system", true)
	case 6:
		l := s.begin("weather_report", false)
		l.str("content", s.text(60, false))
		whole := len(s.line.b)
		s.end()
		s.account.Message("unknown", append([]byte(nil), s.line.b[:whole+1]...))
	}
}

// begin starts a record of generation 1; with iso its time is a string.
func (s *session) begin(typ string, iso bool) *line {
	l := s.start()
	l.str("type", []byte(typ)).str("session_id", []byte(s.id))
	if iso {
		l.str("timestamp", []byte(time.Unix(0, s.now).UTC().Format("2006-01-02T15:04:05.000000+00:00")))
	} else {
		l.time("timestamp", s.now)
	}
	if s.stored() { // newer writers name every record
		l.str("message_id", []byte(s.uuid()))
	}
	return l
}

// store starts a record of generation 2 or 3 and its data.
func (s *session) store(typ string) *line {
	l := s.start()
	l.str("_type", []byte(typ)).time("timestamp", s.now).str("session_id", []byte(s.id))
	l.str("message_id", []byte(s.uuid()))
	return l.key("data").open('{')
}

func (s *session) start() *line {
	s.advance(20 * time.Millisecond)
	s.line = line{b: s.line.b[:0], ascii: s.chance(0.06)}
	return s.line.open('{')
}

// end writes the line, and sometimes a repetition, a torn line or a blank one.
func (s *session) end() {
	b := append(s.line.close('}').b, '\n')
	s.line.b = b
	s.out = append(s.out, b...)
	s.account.Lines++
	if s.o.Repeated > 0 && s.chance(s.o.Repeated) {
		s.out = append(s.out, b...)
		s.account.Lines++
	}
	if s.o.Broken > 0 && s.chance(s.o.Broken) {
		s.tear(b)
	}
	if s.chance(0.003) {
		s.out = append(s.out, [...]string{"\n", "  \n", "\r\n"}[s.rng.IntN(3)]...)
		s.account.Lines++
		s.account.Blank++
	}
}

// tear writes a line that is not JSON.
func (s *session) tear(b []byte) {
	n := 1 + s.rng.IntN(len(b)-3)
	switch s.rng.IntN(3) {
	case 0: // cut off
		s.out = append(s.out, b[:n]...)
	case 1: // cut off, and bytes that are no text
		s.out = append(append(s.out, b[:n]...), "\xff\xfe\x00"...)
	case 2: // two writers at once
		s.out = append(append(s.out, b[:n]...), b[:len(b)-1]...)
	}
	s.out = append(s.out, '\n')
	s.account.Lines++
	s.account.Broken++
}

// advance lets about that much time pass.
func (s *session) advance(about time.Duration) {
	s.now += int64(time.Millisecond) + int64(s.rng.ExpFloat64()*float64(about))
}

func (s *session) chance(share float64) bool { return s.rng.Float64() < share }

func (s *session) text(median int, code bool) []byte {
	s.marks++
	return s.pool.text(s.rng, "#"+strconv.Itoa(s.marks), size(s.rng, median, s.o.MaxContent), code)
}

func (s *session) uuid() string {
	a, b := s.rng.Uint64(), s.rng.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-a%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0xfff, b&0xffffffffffff)
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

func (s *session) name(prefix string) string {
	b := append(make([]byte, 0, len(prefix)+24), prefix...)
	for range 24 {
		b = append(b, letters[s.rng.IntN(len(letters))])
	}
	return string(b)
}
