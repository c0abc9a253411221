package otlp

import (
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/earshot-dev/earshot/core/sdk/jsonv"
)

const (
	// frameSize is the size at which a frame ends and another begins.
	frameSize = 256 << 10
	// maxRecord is the longest JSON of one record. Records are small; this leaves room for a
	// request to a model with its whole context.
	maxRecord = 16 << 20
	// maxHead is the longest JSON of a resource and a scope, which every frame of them has.
	maxHead = 1 << 20
	// maxGrowth is how many times as long as max_body the JSON of a request may be.
	maxGrowth = 8
)

// transcript is a request as frames: in each of them are records of one resource and one
// scope. It is used for one request after the other.
type transcript struct {
	router *router
	signal *signal
	hold   func(n int) error // takes memory
	most   int               // bytes of all frames

	buf     []byte
	pieces  []piece
	streams []target
	index   map[string]int // of streams, by key
	held    int            // bytes of buf that memory was taken for

	rejected int64 // records that are too long
	records  int64

	// The place in the request.
	resource resource
	head     []byte // of a frame: up to the records
	outer    int    // bytes of head that all scopes of the resource share
	stream   int
	begin    int // of the frame in buf; -1: none is open
	facts    jsonv.Doc
	doc      jsonv.Doc
}

// piece is a frame.
type piece struct {
	stream   int
	from, to int
	tooLong  bool
}

// target is the stream of a frame.
type target struct {
	format, key, origin string
}

var (
	errHead  = fmt.Errorf("a resource or scope of more than %d bytes", maxHead)
	errTotal = errors.New("the records are too many for one request")
)

// reset prepares for another request.
func (t *transcript) reset(s *signal, hold func(int) error) {
	t.signal, t.hold = s, hold
	t.buf, t.pieces, t.streams = t.buf[:0], t.pieces[:0], t.streams[:0]
	clear(t.index)
	t.held, t.rejected, t.records, t.begin = 0, 0, 0, -1
}

// protobuf reads a request in protobuf's encoding.
func (t *transcript) protobuf(in []byte) error {
	err := t.wire(in)
	if !errors.Is(err, errTwice) {
		return err
	}
	// The library merges the parts. Its values take a multiple of the bytes.
	const multiple = 48
	if err := t.hold(multiple * len(in)); err != nil {
		return err
	}
	whole := proto.Clone(t.signal.empty)
	if err := (proto.UnmarshalOptions{RecursionLimit: maxDepth}).Unmarshal(in, whole); err != nil {
		return err
	}
	if in, err = proto.Marshal(whole); err != nil {
		return err
	}
	t.reset(t.signal, t.hold)
	return t.wire(in)
}

func (t *transcript) wire(in []byte) error {
	top := t.signal.request
	resources := top.names[t.signal.resources]
	scopes := resources.message.names[t.signal.scopes]
	records := scopes.message.names[t.signal.records]
	return each(top, resources, in, func(in []byte) error {
		p := protobuf{limit: maxHead}
		var err error
		t.head, err = p.members(t.openHead(), resources.message, in, 0, scopes)
		if err := t.closeResource(err); err != nil {
			return err
		}
		return each(resources.message, scopes, in, func(in []byte) error {
			p := protobuf{limit: t.outer + maxHead}
			t.head, err = p.members(t.head[:t.outer], scopes.message, in, 0, records)
			if err := t.closeScope(err); err != nil {
				return err
			}
			err := each(scopes.message, records, in, func(in []byte) error {
				from := t.beginRecord()
				p := protobuf{limit: from + maxRecord}
				t.buf, err = p.message(t.buf, records.message, in, 0)
				return t.endRecord(from, err)
			})
			t.closeFrame()
			return err
		})
	})
}

// json reads a request in JSON.
func (t *transcript) json(in []byte) error {
	// The reader notes each value in up to 16 bytes, and its notes grow by being copied.
	const notes = 24
	if err := t.hold(notes * len(in)); err != nil {
		return err
	}
	if err := t.doc.Parse(in); err != nil {
		return err
	}
	top := t.signal.request
	resources := top.names[t.signal.resources]
	scopes := resources.message.names[t.signal.scopes]
	records := scopes.message.names[t.signal.records]
	if !t.doc.Root().Is(jsonv.Object) {
		return errors.New("not an object")
	}
	return items(top, resources, t.doc.Root(), func(v jsonv.Value) error {
		var err error
		t.head, err = members(t.openHead(), resources.message, v, scopes, maxHead)
		if err := t.closeResource(err); err != nil {
			return err
		}
		return items(resources.message, scopes, v, func(v jsonv.Value) error {
			t.head, err = members(t.head[:t.outer], scopes.message, v, records, t.outer+maxHead)
			if err := t.closeScope(err); err != nil {
				return err
			}
			err := items(scopes.message, records, v, func(v jsonv.Value) error {
				from := t.beginRecord()
				t.buf, err = object(t.buf, records.message, v, from+maxRecord)
				return t.endRecord(from, err)
			})
			t.closeFrame()
			return err
		})
	})
}

// items calls do with the elements of a list in an object.
func items(m *message, f *field, v jsonv.Value, do func(jsonv.Value) error) error {
	for key, list := range v.Members() {
		if m.names[string(key.Bytes())] != f || !list.Exists() {
			continue
		}
		if !list.Is(jsonv.Array) {
			return at(m, f, errors.New("not an array"))
		}
		for e := range list.Elems() {
			if err := do(e); err != nil {
				return err
			}
		}
	}
	return nil
}

// openHead begins the head of a resource.
func (t *transcript) openHead() []byte {
	return append(append(append(t.head[:0], `{"`...), t.signal.resources...), `":[{`...)
}

// closeResource ends the part of the head that is the resource's.
func (t *transcript) closeResource(err error) error {
	if err != nil {
		return headError(err)
	}
	// The head is an object without its end.
	open := len(t.head)
	t.head = append(t.head, `}]}`...)
	if err := t.facts.Parse(t.head); err != nil {
		return err
	}
	for v := range t.facts.Root().Get(t.signal.resources).Elems() {
		t.resource = resourceOf(v.Get("resource"))
	}
	t.head = t.comma(t.head[:open])
	t.head = append(append(append(t.head, '"'), t.signal.scopes...), `":[{`...)
	t.outer = len(t.head)
	return nil
}

func headError(err error) error {
	if errors.Is(err, errLong) {
		return errHead
	}
	return err
}

// comma appends the comma between members, if there is one before.
func (t *transcript) comma(b []byte) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return b
}

// closeScope ends the head, and finds the stream.
func (t *transcript) closeScope(err error) error {
	if err != nil {
		return headError(err)
	}
	open := len(t.head)
	t.head = append(t.head, '}')
	if err := t.facts.Parse(t.head[t.outer-1:]); err != nil {
		return err
	}
	scope := string(t.facts.Root().Path("scope", "name").Chars())
	t.head = t.comma(t.head[:open])
	t.head = append(append(append(t.head, '"'), t.signal.records...), `":[`...)
	format := t.router.formatOf(t.resource.service, scope)
	key := t.resource.key(format)
	n, known := t.index[key]
	if !known {
		n = len(t.streams)
		t.index[key] = n
		t.streams = append(t.streams, target{format, key, t.resource.origin()})
	}
	t.stream = n
	return nil
}

// beginRecord returns where the next record begins.
func (t *transcript) beginRecord() int {
	if t.begin >= 0 && len(t.buf)-t.begin >= frameSize {
		t.closeFrame()
	}
	if t.begin < 0 {
		t.begin = len(t.buf)
		t.buf = append(t.buf, t.head...)
	} else {
		t.buf = append(t.buf, ',')
	}
	return len(t.buf)
}

// endRecord ends a record that began there.
func (t *transcript) endRecord(from int, err error) error {
	t.records++
	switch {
	case errors.Is(err, errLong):
		t.reject(from)
	case err != nil:
		return err
	}
	if len(t.buf) > t.most {
		return errTotal
	}
	if more := cap(t.buf) - t.held; more > 0 {
		if err := t.hold(more); err != nil {
			return err
		}
		t.held = cap(t.buf)
	}
	return nil
}

// kept is how much of a record that is too long is kept.
const kept = 64 << 10

// reject makes a frame of its own of the begin of a record that is too long.
func (t *transcript) reject(from int) {
	t.rejected++
	t.buf = t.buf[:from+kept]
	switch begin := t.begin; {
	case t.buf[from-1] == ',': // the frame has others
		first := append([]byte(nil), t.buf[from:]...)
		t.buf = t.buf[:from-1]
		t.closeFrame()
		from = len(t.buf)
		t.buf = append(t.buf, first...)
	default:
		copy(t.buf[begin:], t.buf[from:])
		t.buf, from = t.buf[:begin+kept], begin
	}
	t.pieces = append(t.pieces, piece{t.stream, from, len(t.buf), true})
	t.begin = -1
}

// closeFrame ends the frame that is open.
func (t *transcript) closeFrame() {
	if t.begin < 0 {
		return
	}
	t.buf = append(t.buf, `]}]}]}`...)
	t.pieces = append(t.pieces, piece{t.stream, t.begin, len(t.buf), false})
	t.begin = -1
}
