package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/msg"
)

// settleTime is how long a metadata file must be unchanged before it is read, so that no half
// written one is.
const settleTime = 50 * time.Millisecond

// unfinishedTime is how long a document that is no whole JSON is taken for one that is being written.
// After that it is delivered as it is, so that it is accounted for.
const unfinishedTime = 10 * time.Second

// metadataReader delivers each version of a metadata file as a stream of one frame.
type metadataReader struct {
	files   *fileset
	streams *streams
	reader  *reader
}

// read delivers the present version of a file, and forgets the streams of older ones.
func (m *metadataReader) read(ctx context.Context, f *file, at stamp) (result, error) {
	if age := time.Since(time.Unix(0, at.mtime)); age >= 0 && age < settleTime {
		return result{after: settleTime - age}, nil
	}
	if f.document && (f.stream == nil || !f.stream.exhausted(at)) {
		if wait := m.unfinished(f, at); wait > 0 {
			return result{after: wait}, nil
		}
	}
	older := m.resume(f, at)
	if at.size == 0 || f.stream != nil && f.stream.exhausted(at) {
		return result{}, m.streams.forget(ctx, f, older...)
	}
	body, key, err := m.body(f, at)
	if err != nil {
		return result{}, err
	}
	defer body.release()
	info, err := f.fd.Stat()
	if err != nil {
		return result{}, err
	}
	if _, now, _ := describe(info); now != at {
		return result{after: settleTime}, nil
	}
	st := f.stream
	if st == nil || st.key != key {
		if st != nil {
			older = append(older, st)
		}
		st = m.newVersion(f, key, at)
	}
	if st.done = at; st.origin == "" || st.rewind.pending() {
		if err := m.deliver(ctx, f, st, &body); err != nil {
			return result{}, err
		}
	}
	older = slices.DeleteFunc(older, func(o *stream) bool { return o.key == key })
	return result{}, m.streams.forget(ctx, f, older...)
}

// unfinished returns how long to wait for the rest of a document; 0 if it is whole, too long, or as it will
// stay.
func (m *metadataReader) unfinished(f *file, at stamp) time.Duration {
	left := unfinishedTime - time.Since(time.Unix(0, at.mtime))
	if left <= 0 || left > unfinishedTime || at.size == 0 || at.size > int64(m.reader.maxLine) {
		return 0
	}
	c := m.reader.buffers.get(int(at.size))
	defer c.release()
	if n, err := f.fd.ReadAt(c.buf, 0); err != nil && err != io.EOF || int64(n) == at.size && json.Valid(bytes.TrimPrefix(c.buf, mark)) {
		return 0
	}
	return min(left, 10*settleTime)
}

// resume sets the stream of f from those that an earlier run read from it: the one that
// has its content. It returns the others.
func (m *metadataReader) resume(f *file, at stamp) (older []*stream) {
	m.files.mu.Lock()
	defer m.files.mu.Unlock()
	for _, st := range f.previous {
		lines := st.fingerprint.headLen > 0 // of a build that did not know it for a document
		if f.stream == nil && !lines && st.done == at && st.safe >= at.size {
			f.stream, st.file = st, f
		} else {
			older = append(older, st)
		}
	}
	f.previous, f.initial = nil, false
	m.files.rotations.unblock(f)
	return older
}

// newVersion sets the stream of f to a new one with that key. An orphan with that stream
// was the same file.
func (m *metadataReader) newVersion(f *file, key string, at stamp) *stream {
	st := &stream{key: key, anchor: at.mtime, file: f}
	m.files.mu.Lock()
	defer m.files.mu.Unlock()
	if g := m.files.orphans.metadata(rotationBase(f.path), key); g != nil {
		m.files.dropOrphan(g)
	}
	m.files.keys[key] = struct{}{}
	f.stream = st
	return st
}

// body reads a file whole, or its first bytes when it is too long, and returns it with the
// key of this version.
func (m *metadataReader) body(f *file, at stamp) (lines, string, error) {
	n := at.size
	if n > int64(m.reader.maxLine) {
		n = int64(min(keptOfLong, m.reader.maxLine))
	}
	c := m.reader.buffers.get(int(n))
	got, err := f.fd.ReadAt(c.buf, 0)
	if err != nil && err != io.EOF {
		c.release()
		return lines{}, "", err
	}
	c.buf = c.buf[:got]
	fr := frame.Frame{Kind: frame.Body, At: m.reader.now(), Data: bytes.TrimPrefix(c.buf, mark), End: at.size}
	if fr.Dropped = at.size - int64(got); fr.Dropped > 0 {
		fr.Reason = msg.ReasonTooLong
	}
	c.frames = append(c.frames, fr)
	sum := sha256.Sum256(c.buf)
	return lines{chunk: c}, fmt.Sprintf("%x-%x-%d-%x", f.id.dev, f.id.ino, at.size, sum[:8]), nil
}

// deliver delivers the frame, unless the sink has it, and closes the stream.
func (m *metadataReader) deliver(ctx context.Context, f *file, st *stream, body *lines) error {
	path, _ := m.files.name(f)
	st.rewind.clear()
	pos := int64(0)
	if st.out == nil { // else the sink rewound it when it was to be closed
		var err error
		if pos, err = m.streams.open(ctx, f, st, path, false); err != nil {
			return err
		}
	}
	if pos == 0 {
		b := body.batch()
		b.Written, b.Backlog = st.anchor, true
		if err := st.out.Deliver(ctx, b); err != nil {
			return sinkFailed("deliver", err)
		}
	}
	if err := m.streams.close(ctx, st, false); err != nil {
		return err
	}
	st.origin = path
	return nil
}
