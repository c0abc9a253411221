// Package sse cuts a stream of server-sent events into frames. It is pure: neither the
// sizes of the chunks nor their pace changes a frame.
//
// It follows the event stream interpretation of the WHATWG HTML standard: CR, LF
// and CRLF end a line, a leading byte order mark is skipped, the data lines of an
// event are joined with \n, an id with a NUL is ignored, a retry that is not all
// digits is ignored, and an event without any data line is no event. It departs
// from the standard where a recorder must:
//
//   - Data stays as it is. The standard replaces invalid UTF-8; here the decoder
//     finds and reports it. Name and ID are made valid.
//   - Name is empty when the event has no event field, not "message".
//   - ID is the id in the event itself. The standard applies it to the following events
//     too; then a frame would depend on where the reading began. LastEventID has that one,
//     for the next connection.
//
// # Ranges
//
// The ranges [Pos, End) of the frames cover the stream without gaps. Bytes between two
// events (blank lines, comments, fields without data) belong to the range of the second.
// An event ends with the byte that ends its blank line; the LF of a CRLF there is the first
// byte of the next range, because it may arrive late or never. Reading may resume at any
// End.
//
//	: hello\n  data: 1\r\n  \r      \n  data: 2\n  \n  data: 3
//	|--------- frame 1 ------|-------- frame 2 ------|- Pending -
package sse

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// DefaultMaxEvent is the limit of an event's data in bytes.
const DefaultMaxEvent = 64 << 20

// maxValue is the limit of an event's name and id; no protocol has longer ones. keep is the
// maximum memory that is kept for the next event.
const (
	maxValue = 4 << 10
	keep     = 256 << 10
)

// Counts count the parts of a stream.
type Counts struct {
	Events   int64
	Comments int64
	Retries  int64
	Empty    int64 // blocks with an event or id field and no data: no event by the standard
}

// state is where in a line the parser is.
type state uint8

const (
	lineStart state = iota
	inComment
	inName   // of the field
	afterSep // right after the colon: one space is skipped
	inValue
)

type field uint8

const (
	otherField field = iota
	dataField
	eventField
	idField
	retryField
)

// Parser parses one stream. It is not safe for concurrent use.
type Parser struct {
	max   int
	pos   int64 // of the next byte
	start int64 // where the range in progress begins

	state state
	field field
	bom   int  // bytes of a byte order mark seen; -1 when there can be none
	cr    bool // the last byte was a CR that ended a line
	fname []byte
	value []byte // of an event, id or retry field

	// The event in progress.
	name, id string
	hasID    bool
	touched  bool // has an event or id field
	lines    int  // of data
	data     []byte
	dropped  int64
	tooLong  bool

	lastName string // kept because events of one name follow each other
	lastID   string
	retry    time.Duration
	counts   Counts
}

// New returns a parser of a stream whose next byte is at position pos, which is
// 0 or the End of a frame. Of an event with more than maxEvent bytes of data the
// head is kept, in a frame whose Reason is too_long; 0 means DefaultMaxEvent.
func New(pos int64, maxEvent int) *Parser {
	if maxEvent <= 0 {
		maxEvent = DefaultMaxEvent
	}
	p := &Parser{max: maxEvent, pos: pos, start: pos}
	if pos != 0 {
		p.bom = -1
	}
	return p
}

// Feed takes the next bytes of the stream, read at that time (Unix ns), and
// appends the frames that they complete to b.
func (p *Parser) Feed(b *frame.Batch, chunk []byte, at int64) {
	ends := lineEnds{b: chunk, lf: -1, cr: -1}
	for i := 0; i < len(chunk); {
		if p.bom >= 0 && p.mark(chunk[i]) {
			i++
			p.pos++
			continue
		}
		if p.cr {
			p.cr = false
			if chunk[i] == '\n' {
				i++
				p.pos++
				continue
			}
		}
		end := ends.next(i)
		p.part(chunk[i:end])
		p.pos += int64(end - i)
		if i = end; i == len(chunk) {
			return
		}
		p.cr = chunk[i] == '\r'
		i++
		p.pos++
		if p.state == lineStart {
			p.blank(b, at)
		} else {
			p.endLine()
		}
	}
}

// Finish ends the stream. The standard drops an event that no blank line ended; a recorder
// keeps it, so Finish appends it to b.
func (p *Parser) Finish(b *frame.Batch, at int64) {
	p.noMark()
	if p.state != lineStart {
		p.endLine()
	}
	p.blank(b, at)
}

// Pending is the number of bytes since the End of the last frame.
func (p *Parser) Pending() int64 { return p.pos - p.start }

// LastEventID is the Last-Event-ID to send with the next connection.
func (p *Parser) LastEventID() string { return p.lastID }

// Retry is the stream's last retry field, the wait before that connection; 0 when it had
// none.
func (p *Parser) Retry() time.Duration { return p.retry }

// Held is the number of bytes in memory that are in no frame yet.
func (p *Parser) Held() int { return len(p.data) + len(p.value) + len(p.fname) }

// Counts returns the counts so far.
func (p *Parser) Counts() Counts { return p.counts }

const byteOrderMark = "\xEF\xBB\xBF"

// mark takes c as the next byte of a byte order mark and reports whether it is.
func (p *Parser) mark(c byte) bool {
	if c != byteOrderMark[p.bom] {
		p.noMark()
		return false
	}
	if p.bom++; p.bom == len(byteOrderMark) {
		p.bom = -1
	}
	return true
}

// noMark parses the bytes that seemed to begin a byte order mark.
func (p *Parser) noMark() {
	if n := p.bom; n >= 0 {
		p.bom = -1
		p.part([]byte(byteOrderMark[:n]))
	}
}

// part takes bytes of one line, none of which ends it.
func (p *Parser) part(b []byte) {
	if len(b) == 0 {
		return
	}
	switch p.state {
	case lineStart:
		if b[0] == ':' {
			p.state = inComment
			p.counts.Comments++
			return
		}
		p.state, p.fname = inName, p.fname[:0]
		fallthrough
	case inName:
		i := bytes.IndexByte(b, ':')
		if i < 0 {
			p.addName(b)
			return
		}
		p.addName(b[:i])
		p.begin()
		if b = b[i+1:]; len(b) == 0 {
			return
		}
		fallthrough
	case afterSep:
		p.state = inValue
		if b[0] == ' ' {
			b = b[1:]
		}
		fallthrough
	case inValue:
		p.add(b)
	}
}

// addName keeps as much of a field's name as distinguishes it from the known ones.
func (p *Parser) addName(b []byte) {
	const longest = len("event")
	p.fname = append(p.fname, b[:min(len(b), longest+1-min(len(p.fname), longest+1))]...)
}

// begin begins the value of the field whose name has been read.
func (p *Parser) begin() {
	p.state, p.value = afterSep, p.value[:0]
	switch string(p.fname) {
	case "data":
		p.field = dataField
		if p.lines++; p.lines > 1 {
			p.add([]byte{'\n'})
		}
	case "event":
		p.field, p.touched = eventField, true
	case "id":
		p.field, p.touched = idField, true
	case "retry":
		p.field = retryField
	default:
		p.field = otherField
	}
}

// add adds bytes to the value of the field.
func (p *Parser) add(b []byte) {
	dst, limit := &p.value, maxValue
	switch p.field {
	case otherField:
		return
	case dataField:
		dst, limit = &p.data, p.max
	}
	n := min(len(b), limit-len(*dst))
	*dst = append(*dst, b[:n]...)
	if n < len(b) && p.field != retryField {
		p.tooLong = true
		p.dropped += int64(len(b) - n)
	}
}

func (p *Parser) endLine() {
	if p.state == inName { // a field without a colon has an empty value
		p.begin()
	}
	if p.state != inComment {
		p.endField()
	}
	p.state = lineStart
}

func (p *Parser) endField() {
	switch p.field {
	case eventField:
		if string(p.value) != p.lastName {
			p.lastName = strings.ToValidUTF8(string(p.value), "\uFFFD")
		}
		p.name = p.lastName
	case idField:
		if bytes.IndexByte(p.value, 0) < 0 {
			p.id, p.hasID = strings.ToValidUTF8(string(p.value), "\uFFFD"), true
		}
	case retryField:
		if ms, err := strconv.ParseUint(string(p.value), 10, 63); err == nil && ms <= math.MaxInt64/uint64(time.Millisecond) {
			p.retry = time.Duration(ms) * time.Millisecond
			p.counts.Retries++
		}
	}
}

// blank ends an event.
func (p *Parser) blank(b *frame.Batch, at int64) {
	if p.hasID {
		p.lastID = p.id
	}
	switch {
	case p.lines > 0:
		f := frame.Frame{Kind: frame.Event, Name: p.name, ID: p.id, At: at, Pos: p.start, End: p.pos}
		if p.tooLong {
			f.Reason, f.Dropped = msg.ReasonTooLong, p.dropped
		}
		b.Append(f, p.data)
		p.start = p.pos
		p.counts.Events++
	case p.touched:
		p.counts.Empty++
	}
	if p.data = p.data[:0]; cap(p.data) > keep {
		p.data = nil
	}
	p.name, p.id, p.hasID, p.touched = "", "", false, false
	p.lines, p.dropped, p.tooLong = 0, 0, false
}

// lineEnds finds the ends of lines. Each of the two characters is searched for
// once, so that a stream with only one of them is not searched again and again.
type lineEnds struct {
	b      []byte
	lf, cr int // the next of each; before the place asked for when not known
}

// next returns the index of the first CR or LF at or after i, or len(b).
func (l *lineEnds) next(i int) int {
	l.lf, l.cr = l.find('\n', l.lf, i), l.find('\r', l.cr, i)
	return min(l.lf, l.cr)
}

func (l *lineEnds) find(c byte, known, i int) int {
	if known >= i {
		return known
	}
	if n := bytes.IndexByte(l.b[i:], c); n >= 0 {
		return i + n
	}
	return len(l.b)
}
