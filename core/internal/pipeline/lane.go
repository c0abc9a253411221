package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/earshot-dev/earshot/core/internal/host"
	"github.com/earshot-dev/earshot/core/internal/wire"
	"github.com/earshot-dev/earshot/core/msg"
)

const (
	// laneDepth is how many requests may be under way in a lane.
	laneDepth = 4
	// requestBytes and requestCommands bound one request.
	requestBytes    = 512 << 10
	requestCommands = 64
)

// lane decodes some of the format's streams, one after another.
type lane struct {
	format  string
	inbox   *inbox
	results resultPool
	queue   chan command
	wake    func() // starts the process if it has ended because there was nothing to do
	// unanswered is the work of the process when it ended; of the receiver, until the format
	// reads it.
	unanswered []attempt
}

// connection is a lane's RPC with one decoder process.
type connection struct {
	rpc       *host.RPC
	snapshots bool // the process's decoders take snapshots
	deadline  time.Duration
	sent      chan request
	// exclusive is shared by all lanes: the request that is decoded alone holds it locked.
	exclusive *sync.RWMutex
}

// request is a group of commands that is sent at once.
type request struct {
	commands []command
	alone    bool // no other request is decoded at the same time
}

// acquire waits until the request may be decoded beside those that are being decoded.
func (conn *connection) acquire(r request) {
	if r.alone {
		conn.exclusive.Lock()
	} else {
		conn.exclusive.RLock()
	}
}

// release is called when the request was answered, or never will be.
func (conn *connection) release(r request) {
	if r.alone {
		conn.exclusive.Unlock()
	} else {
		conn.exclusive.RUnlock()
	}
}

// put queues a command, or discards it.
func (l *lane) put(ctx context.Context, cmd command) (err error) {
	l.inbox.pending.Add(1)
	select {
	case l.queue <- cmd:
		l.wake()
		return nil
	case <-ctx.Done():
		err = ctx.Err()
	case <-l.inbox.stopped:
		err = errStopped
	}
	l.inbox.discard(cmd)
	return err
}

// tryPut queues a command if there is room.
func (l *lane) tryPut(cmd command) bool {
	l.inbox.pending.Add(1)
	select {
	case l.queue <- cmd:
		l.wake()
		return true
	default:
		l.inbox.pending.Add(-1)
		return false
	}
}

// empty discards the queued commands, whose streams are about to be rewound.
func (l *lane) empty() {
	for {
		select {
		case cmd := <-l.queue:
			l.inbox.discard(cmd)
		default:
			return
		}
	}
}

// send sends queued commands to the decoder process until ctx ends, or stop is closed: then those that
// are not sent stay in the queue. An error of the connection is reported by the receiver.
func (l *lane) send(ctx context.Context, stop <-chan struct{}, conn *connection) {
	defer close(conn.sent)
	defer func() { _ = conn.rpc.CloseSend() }()
	for {
		var requests []request
		select {
		case <-ctx.Done():
			return
		case <-stop:
			return
		case cmd := <-l.queue:
			requests = l.collect(conn, cmd)
		}
		for i, r := range requests {
			if !l.transmit(ctx, conn, r) {
				for _, r := range requests[i+1:] {
					l.inbox.discard(r.commands...)
				}
				return
			}
		}
	}
}

// collect makes requests of a command and those queued behind it.
func (l *lane) collect(conn *connection, cmd command) (out []request) {
	var r request
	for size := 0; ; {
		if isolated := l.isolate(conn, cmd); isolated != nil {
			return append(append(out, r), isolated...)
		}
		r.commands = append(r.commands, cmd)
		if size += len(cmd.data()); len(r.commands) == requestCommands || size >= requestBytes {
			return append(out, r)
		}
		select {
		case cmd = <-l.queue:
		default:
			return append(out, r)
		}
	}
}

// isolate returns the requests of a command that may have ended two processes: each suspect
// frame is decoded alone. It returns nil for every other command.
func (l *lane) isolate(conn *connection, cmd command) (out []request) {
	t := cmd.target()
	suspect := t.stream.cursor.view().quarantine.search
	if suspect.crashes < isolateAfter {
		return nil
	}
	work := cmd.attempt()
	if work.to <= suspect.from || work.from >= suspect.to {
		return nil
	}
	if !t.stream.decoder.openIn(conn, t.generation) {
		first := ticket{t.stream, t.generation, work.from}
		out = append(out, request{commands: []command{&openDecoder{first}}, alone: true})
	}
	if d, ok := cmd.(*decode); ok {
		out = append(out, d.split(suspect.from, suspect.to)...)
	} else {
		out = append(out, request{commands: []command{cmd}, alone: true})
	}
	l.inbox.pending.Add(int64(len(out)) - 1)
	return out
}

// transmit sends a request. It returns false when the connection has ended.
func (l *lane) transmit(ctx context.Context, conn *connection, r request) bool {
	req := &wire.Request{Batches: make([]wire.Batch, 0, len(r.commands))}
	live := r.commands[:0]
	for i, cmd := range r.commands {
		v := cmd.target().stream.cursor.view()
		if v.quarantine.stream != "" { // the decoder is not to be opened any more
			if !l.answer(ctx, cmd, new(wire.Result)) {
				l.inbox.discard(append(live, r.commands[i+1:]...)...)
				return false
			}
			continue
		}
		if b, ok := conn.encode(cmd, v); ok {
			req.Batches, live = append(req.Batches, b), append(live, cmd)
		} else {
			l.inbox.discard(cmd)
		}
	}
	if r.commands = live; len(live) == 0 {
		return true
	}
	conn.acquire(r)
	if ctx.Err() != nil {
		conn.release(r)
		l.inbox.discard(r.commands...)
		return false
	}
	select {
	case conn.sent <- r:
		return conn.rpc.Send(req) == nil // otherwise the receiver discards the commands
	case <-ctx.Done():
		conn.release(r)
		l.inbox.discard(r.commands...)
		return false
	}
}

// encode makes a command's part of a request; ok is false when the stream was rewound after
// the command was queued.
func (conn *connection) encode(cmd command, v view) (b wire.Batch, ok bool) {
	s := cmd.target().stream
	if cmd.target().generation != v.generation {
		return b, false
	}
	b = cmd.encode(v)
	b.Stream = s.id
	if b.Snapshot = b.Snapshot && conn.snapshots; b.Snapshot {
		s.decoder.unsnapped, s.decoder.asked = 0, time.Now()
	}
	if !s.decoder.openIn(conn, v.generation) {
		s.decoder.conn, s.decoder.generation = conn, v.generation
		b.Open = &wire.Open{Origin: v.resume.origin, Options: s.feed.options, Snapshot: v.resume.snapshot, Source: s.feed.source}
	}
	if b.Close {
		s.decoder.conn = nil
	}
	return b, true
}

// receive passes results to the core. fail ends the sender, which may be waiting for frames
// that will not be delivered.
func (l *lane) receive(ctx context.Context, conn *connection, fail func()) (e exit) {
	resp := new(wire.Response)
	for r := range conn.sent {
		if e.err == nil {
			if e = l.await(ctx, conn, r, resp); e.err != nil {
				l.suspect(r.commands, r.alone)
			}
		} else if e.reason == "" { // answers to earlier requests may have been lost with the process
			l.suspect(r.commands, r.alone)
		}
		if e.err != nil {
			fail() // before another lane goes on
		}
		conn.release(r)
		if e.err != nil {
			l.inbox.discard(r.commands...)
			continue
		}
		err := l.deliver(ctx, resp, r.commands)
		resp.Reset()
		if err != nil {
			e = exit{err: err, reason: msg.ReasonDecoderInvalid, lane: l}
			fail()
		}
	}
	return e
}

// errOtherLane is the error of a lane that ended because another did.
var errOtherLane = errors.New("another lane ended")

// await waits for a response. How long depends on the size of the request.
func (l *lane) await(ctx context.Context, conn *connection, r request, resp *wire.Response) exit {
	size := 0
	for _, cmd := range r.commands {
		size += len(cmd.data())
	}
	limit := conn.deadline * time.Duration(1+size>>20)
	var late atomic.Bool
	timer := time.AfterFunc(limit, func() { late.Store(true); conn.rpc.Close() })
	err := conn.rpc.Recv(resp)
	timer.Stop()
	switch {
	case err == nil:
		return exit{}
	case late.Load():
		return exit{err: fmt.Errorf("decoder %s: no answer in %s", l.format, limit), reason: msg.ReasonDecoderTimeout, lane: l}
	case ctx.Err() != nil:
		return exit{err: errOtherLane}
	}
	return exit{err: err}
}

// suspect notes that the process worked on the commands when it ended.
func (l *lane) suspect(commands []command, alone bool) {
	for _, cmd := range commands {
		a := cmd.attempt()
		a.alone = alone
		l.unanswered = append(l.unanswered, a)
	}
}

// deliver hands the results of one response to the core, in order. The error is one of the
// protocol, or ctx's.
func (l *lane) deliver(ctx context.Context, resp *wire.Response, commands []command) error {
	asked := make([]attempt, 0, len(commands)) // the core may have released the commands by then
	for _, cmd := range commands {
		asked = append(asked, cmd.attempt())
	}
	i := 0
	err := resp.Results(func(raw []byte) error {
		if i >= len(commands) {
			return fmt.Errorf("decoder %s: more results than batches", l.format)
		}
		cmd := commands[i]
		i++
		r := l.results.get()
		if err := r.Read(raw, cmd.data()); err != nil {
			l.inbox.discard(cmd)
			return err
		}
		if id := cmd.target().stream.id; r.Stream != id {
			l.inbox.discard(cmd)
			return fmt.Errorf("decoder %s: result of stream %d, expected %d", l.format, r.Stream, id)
		}
		cmd.target().stream.feed.redact(cmd, r)
		if !l.answer(ctx, cmd, r) {
			return ctx.Err()
		}
		return nil
	})
	if err == nil && i < len(commands) {
		err = fmt.Errorf("decoder %s: %d results for %d batches", l.format, i, len(commands))
	}
	l.inbox.discard(commands[i:]...)
	if err != nil && ctx.Err() == nil {
		l.unanswered = asked
	}
	return err
}

// answer hands a result to the core, which owns the command from then on.
func (l *lane) answer(ctx context.Context, cmd command, r *wire.Result) bool {
	select {
	case l.inbox.results <- result{cmd, r}:
		return true
	case <-ctx.Done():
		l.inbox.discard(cmd)
		return false
	}
}
