// Package eventstream cuts a stream of application/vnd.amazon.eventstream, the binary framing of
// AWS, into frames. It is pure: neither the sizes of the chunks nor their pace changes a frame.
//
//	total length | headers length | CRC of these 8 bytes | headers | payload | CRC of all before it
//	     4       |       4        |          4           |    …    |    …    |          4
//
// Integers are big-endian, and both checksums are the IEEE CRC-32. A header is the length of its name in
// a byte, the name, its type in a byte, and the value; strings and bytes have a length of two bytes.
//
// A message is an Event frame: its Name is the header :event-type, of an exception :exception-type, of an
// error :error-code, and its Data the payload; of an error without a payload {"message": …}.
//
// # Damage
//
// The length of a message is believed if the first checksum is right. A message whose second one is wrong
// is a frame with ReasonChecksum, and the next follows it. Where the first is wrong, or bytes are missing
// the parser skips to the next twelve bytes that are a prelude: of 4 billion other places one
// looks like it. Skipped bytes are a frame with ReasonChecksum too, without data. Of a message above the
// limit the head is kept, with ReasonTooLong; the end of the stream within a message is ReasonTruncated.
// The ranges of the frames cover the stream without gaps.
package eventstream

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"strings"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// The reasons of frames that are not whole.
const (
	ReasonChecksum  = "bad_checksum"
	ReasonTruncated = "truncated_message"
)

const (
	prelude  = 12
	overhead = prelude + 4
	keep     = 256 << 10 // memory that is kept for the next message
)

// Parser cuts one stream. It is not safe for concurrent use.
type Parser struct {
	max int

	pos, start int64  // behind the last byte, and where the next frame begins
	held       []byte // of the message in progress, from its prelude on
	total      int    // its length; 0 until the prelude is whole
	over       int64  // bytes of it that were dropped
	skipped    int64  // before it
}

// New returns a parser whose frames hold at most limit bytes of data.
func New(limit int) *Parser { return &Parser{max: limit} }

// Held is the number of bytes in memory that are in no frame yet.
func (p *Parser) Held() int { return len(p.held) }

// Feed takes the next bytes, read at that time, and adds the frames they complete.
func (p *Parser) Feed(b *frame.Batch, chunk []byte, at int64) {
	for len(chunk) > 0 {
		if p.total == 0 {
			n := min(prelude-len(p.held), len(chunk))
			p.add(chunk[:n])
			chunk = chunk[n:]
			p.begin(b, at)
			continue
		}
		n := min(p.total-len(p.held)-int(p.over), len(chunk))
		stored := min(n, max(p.max+overhead-len(p.held), 0))
		p.add(chunk[:stored])
		p.over += int64(n - stored)
		p.pos += int64(n - stored)
		chunk = chunk[n:]
		if len(p.held)+int(p.over) == p.total {
			p.end(b, at)
		}
	}
}

func (p *Parser) add(part []byte) {
	p.held = append(p.held, part...)
	p.pos += int64(len(part))
}

// begin reads the prelude. One that is none is skipped by a byte.
func (p *Parser) begin(b *frame.Batch, at int64) {
	for len(p.held) >= prelude {
		total, headers := binary.BigEndian.Uint32(p.held), binary.BigEndian.Uint32(p.held[4:])
		const most = 1 << 30
		if crc32.ChecksumIEEE(p.held[:8]) == binary.BigEndian.Uint32(p.held[8:]) && total >= overhead && total < most && headers <= total-overhead {
			if p.total = int(total); p.skipped > 0 {
				b.Append(frame.Frame{Kind: frame.Event, At: at, Pos: p.start, End: p.start + p.skipped, Dropped: p.skipped, Reason: ReasonChecksum}, nil)
				p.start += p.skipped
				p.skipped = 0
			}
			return
		}
		p.held = append(p.held[:0], p.held[1:]...)
		p.skipped++
	}
}

// end adds the frame of the message.
func (p *Parser) end(b *frame.Batch, at int64) {
	f := frame.Frame{Kind: frame.Event, At: at, Pos: p.start, End: p.pos, Dropped: p.over}
	headers := int(binary.BigEndian.Uint32(p.held[4:]))
	data := p.held[min(prelude+headers, len(p.held)):]
	switch {
	case p.over > 0:
		f.Reason = msg.ReasonTooLong
	case crc32.ChecksumIEEE(p.held[:p.total-4]) != binary.BigEndian.Uint32(p.held[p.total-4:]):
		f.Reason = ReasonChecksum
	default:
		data = p.held[prelude+headers : p.total-4]
		var ok bool
		if f.Name, data, ok = named(p.held[prelude:prelude+headers], data); !ok {
			f.Reason = ReasonChecksum // the sender's checksum covers headers that cannot be read
		}
	}
	b.Append(f, data)
	p.reset()
}

// named returns the name of a message by its headers, and its data.
func named(headers, data []byte) (name string, _ []byte, ok bool) {
	values := make(map[string]string, 4)
	for len(headers) > 0 {
		n := int(headers[0])
		if len(headers) < n+2 {
			return "", data, false
		}
		key, typ := string(headers[1:1+n]), headers[1+n]
		headers = headers[n+2:]
		size, start := 0, 0
		switch typ {
		case 0, 1: // true, false
		case 2:
			size = 1
		case 3:
			size = 2
		case 4:
			size = 4
		case 5, 8: // an integer, a time
			size = 8
		case 6, 7: // bytes, a string
			if len(headers) < 2 {
				return "", data, false
			}
			start, size = 2, int(binary.BigEndian.Uint16(headers))
		case 9:
			size = 16
		default:
			return "", data, false
		}
		if len(headers) < start+size {
			return "", data, false
		}
		if typ == 7 {
			values[key] = strings.ToValidUTF8(string(headers[2:2+size]), "\uFFFD")
		}
		headers = headers[start+size:]
	}
	switch values[":message-type"] {
	case "exception":
		return values[":exception-type"], data, true
	case "error":
		if len(data) == 0 {
			data, _ = json.Marshal(map[string]string{"message": values[":error-message"]}) // strings never fail
		}
		return values[":error-code"], data, true
	}
	return values[":event-type"], data, true
}

// Finish adds the message that the end of the stream has cut, if there is one.
func (p *Parser) Finish(b *frame.Batch, at int64) {
	if len(p.held) == 0 && p.skipped == 0 {
		return
	}
	f := frame.Frame{Kind: frame.Event, At: at, Pos: p.start, End: p.pos, Dropped: p.skipped + p.over, Reason: ReasonTruncated}
	b.Append(f, p.held)
	p.skipped = 0
	p.reset()
}

func (p *Parser) reset() {
	p.start, p.total, p.over = p.pos, 0, 0
	if p.held = p.held[:0]; cap(p.held) > keep {
		p.held = nil
	}
}

// Append appends a message with headers that are strings, name and value in turns, for tests and
// recordings.
func Append(dst []byte, payload []byte, headers ...string) []byte {
	var h []byte
	for i := 0; i+1 < len(headers); i += 2 {
		h = append(append(append(h, byte(len(headers[i]))), headers[i]...), 7)
		h = append(binary.BigEndian.AppendUint16(h, uint16(len(headers[i+1]))), headers[i+1]...)
	}
	start := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(overhead+len(h)+len(payload)))
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(h)))
	dst = binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
	dst = append(append(dst, h...), payload...)
	return binary.BigEndian.AppendUint32(dst, crc32.ChecksumIEEE(dst[start:]))
}
