package wrap

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxQueue   = 64 << 20 // bytes that are passed and not recorded
	maxLine    = 32 << 20 // of a message
	maxFile    = 64 << 20
	maxUnknown = 16 // messages of the client after which a connection of no known format is not recorded
	patience   = 2 * time.Second
)

// Folder has the folders of the formats, in a data directory.
const Folder = "wrap"

// Settings of a Recorder.
type Settings struct {
	Dir     string // of the folders of the formats
	File    string // records here, and not in Dir
	Format  string // one of Formats; "" is known by the first messages
	Program string // for the name of the file
	// Redact returns a message without its secrets.
	Redact func([]byte) []byte
}

// Recorder writes the messages of one connection to a file.
type Recorder struct {
	chunks chan chunk
	done   chan struct{}

	mu      sync.Mutex
	queued  int
	dropped map[Direction]int // bytes that are in no record yet
	closed  bool
}

// chunk is the bytes of one read.
type chunk struct {
	at   time.Time
	dir  Direction
	data []byte
}

// NewRecorder returns a recorder. open is called once, beside the traffic: it may take
// time, and an error means that nothing is recorded.
func NewRecorder(open func() (Settings, error)) *Recorder {
	r := &Recorder{chunks: make(chan chunk, 4096), done: make(chan struct{}), dropped: make(map[Direction]int)}
	go func() {
		defer close(r.done)
		defer func() { _ = recover() }() // the traffic goes on
		s, err := open()
		if err != nil {
			r.discard()
			return
		}
		w := &writer{Settings: s, recorder: r, began: time.Now(), lines: make(map[Direction]*line)}
		w.run()
	}()
	return r
}

// Tap records a copy of the bytes, or counts them as lost if too many are queued.
func (r *Recorder) Tap(d Direction, b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	if r.queued+len(b) > maxQueue {
		r.dropped[d] += len(b)
		return
	}
	select {
	case r.chunks <- chunk{time.Now(), d, bytes.Clone(b)}:
		r.queued += len(b)
	default:
		r.dropped[d] += len(b)
	}
}

// Close records the queue, as long as that takes no longer than patience.
func (r *Recorder) Close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.chunks)
	}
	r.mu.Unlock()
	select {
	case <-r.done:
	case <-time.After(patience):
	}
}

// discard stops recording, and frees the queue.
func (r *Recorder) discard() {
	r.mu.Lock()
	r.queued = maxQueue + 1 // every chunk is dropped
	r.mu.Unlock()
	for range r.chunks { //nolint:revive // until Close
	}
}

// take counts bytes as no longer queued, and returns those of the direction that were dropped.
func (r *Recorder) take(c chunk) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queued -= len(c.data)
	n := r.dropped[c.dir]
	delete(r.dropped, c.dir)
	return n
}

// line is a message of which the end has not come.
type line struct {
	at   time.Time
	data []byte
	lost int
}

// writer is the state of the recorder's goroutine.
type writer struct {
	Settings
	recorder *Recorder
	began    time.Time
	lines    map[Direction]*line

	pending []byte // records that are not in the file
	unknown int    // messages of the client before the format was known
	file    *os.File
	files   int
	size    int64
}

// run records until the recorder is closed.
func (w *writer) run() {
	for c := range w.recorder.chunks {
		w.chunk(c)
		for more := true; more && len(w.pending) < 1<<20; {
			select {
			case c, ok := <-w.recorder.chunks:
				if more = ok; ok {
					w.chunk(c)
				}
			default:
				more = false
			}
		}
		if w.Format == "" && w.unknown >= maxUnknown {
			w.recorder.discard()
			return
		}
		w.write()
	}
	for _, d := range []Direction{Out, In} {
		if l := w.lines[d]; l != nil && len(l.data)+l.lost > 0 {
			w.record(d, l)
		}
	}
	w.write()
	if w.file != nil {
		_ = w.file.Close()
	}
}

// chunk cuts bytes into messages.
func (w *writer) chunk(c chunk) {
	l := w.lines[c.dir]
	if l == nil {
		l = new(line)
		w.lines[c.dir] = l
	}
	l.lost += w.recorder.take(c)
	for len(c.data) > 0 {
		piece, rest, whole := bytes.Cut(c.data, []byte("\n"))
		c.data = rest
		l.at = c.at
		if len(l.data)+len(piece) > maxLine {
			l.lost += len(piece)
		} else {
			l.data = append(l.data, piece...)
		}
		if whole {
			w.record(c.dir, l)
			*l = line{data: l.data[:0]}
			if cap(l.data) > 1<<20 {
				l.data = nil
			}
		}
	}
}

// record adds a record of a message.
func (w *writer) record(d Direction, l *line) {
	data := bytes.TrimSpace(l.data)
	if len(data) == 0 && l.lost == 0 {
		return
	}
	if w.Format == "" {
		w.Format = formatOf(data)
		if d == Out { // the program may print what it likes first, and is recorded all the same
			w.unknown++
		}
	}
	if w.Redact != nil {
		data = w.Redact(data)
	}
	if !json.Valid(data) {
		data, _ = json.Marshal(string(data))
	}
	w.pending = fmt.Appendf(w.pending, `{"t":%q,"dir":%q,"frame":%s`, l.at.UTC().Format("2006-01-02T15:04:05.000000000Z"), d, data)
	if l.lost > 0 {
		w.pending = fmt.Appendf(w.pending, `,"lost":%d`, l.lost)
	}
	w.pending = append(w.pending, "}\n"...)
}

// errUnknown: the folder of the recording is not known yet.
var errUnknown = errors.New("unknown format")

// write writes the pending records. Those that cannot be written are tried again with the next
// ones, and dropped when they are too many.
func (w *writer) write() {
	if len(w.pending) == 0 || w.Format == "" && len(w.pending) < maxLine {
		return
	}
	err := errUnknown
	if w.Format != "" {
		err = w.open()
	}
	if err == nil {
		var n int
		if n, err = w.file.Write(w.pending); err != nil && n > 0 {
			err = errors.Join(err, w.file.Truncate(w.size)) // no half record
		}
	}
	switch {
	case err == nil:
		w.size += int64(len(w.pending))
	case len(w.pending) < maxLine:
		return
	default:
		w.recorder.mu.Lock()
		w.recorder.dropped[In] += len(w.pending)
		w.recorder.mu.Unlock()
	}
	if w.pending = w.pending[:0]; cap(w.pending) > 4<<20 {
		w.pending = nil
	}
}

// open opens the file, or the next one when it is full.
func (w *writer) open() error {
	if w.file != nil && (w.File != "" || w.size < maxFile) {
		return nil
	}
	path := w.File
	if path == "" {
		dir := filepath.Join(w.Dir, w.Format)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		removeOld(dir, time.Now())
		path = filepath.Join(dir, w.name())
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil && w.File == "" {
		err = lock(f)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	if w.file != nil {
		_ = w.file.Close()
	}
	w.file, w.size = f, size
	w.files++
	return nil
}

// name is the name of the next file of the connection.
func (w *writer) name() string {
	program := strings.Map(func(c rune) rune {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' {
			return c
		}
		return '-'
	}, filepath.Base(w.Program))
	name := w.began.UTC().Format("20060102T150405Z") + "-" + strconv.Itoa(os.Getpid()) + "-" + program
	if w.files > 0 {
		name += "." + strconv.Itoa(w.files+1)
	}
	return name + ".jsonl"
}
