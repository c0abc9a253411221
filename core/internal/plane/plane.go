// Package plane carries the requests and responses of Decode over a stream socket of its own, beside
// the gRPC connection of the same process: the frames' bytes are the bulk of all that crosses
// the boundary, and HTTP/2 cuts them into pieces of 16 KiB, each of which is framed, counted against
// two windows, handed between goroutines on both sides and copied into a buffer of its own.
//
// The decoder process listens on the socket that the host names in its environment. The host
// connects once for each lane, and such a connection is one Decode call: requests enter, the
// responses to them leave in the same order. Each is a message of core/proto/PROTOCOL.md,
// the same bytes as over gRPC, behind its length in four bytes, big-endian. What else gRPC does for a
// decoder (describe, check, shutdown) stays there, as do deadlines and the end of the process with the
// host. A process that does not listen is spoken to over gRPC alone.
//
// Both sides hold one message at a time. A length above wire.MaxMessage is an error, and memory
// is taken as bytes arrive, not as a length announces them. A peer that does not read
// blocks the writer, as a full window does.
package plane

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/earshot-dev/earshot/core/internal/wire"
)

// Env is the variable with the path at which a decoder process may listen.
const Env = "EARSHOT_DECODE_SOCKET"

// lengthSize is the size of the length before a message.
const lengthSize = 4

// socketBuffer is how much a sender may be ahead of its peer; the system may allow less.
const socketBuffer = 512 << 10

// Conn is one Decode call. One goroutine sends and one receives: a peer may answer before it
// takes the next request.
type Conn struct {
	conn *net.UnixConn
	in   reader
	// Of the sender: the length, the pieces of a message, and those of their bytes that are
	// in no other buffer.
	length [lengthSize]byte
	pieces [][]byte
	own    []byte
}

func newConn(c *net.UnixConn) *Conn {
	// A smaller buffer works as well, in more turns.
	_ = c.SetWriteBuffer(socketBuffer)
	return &Conn{conn: c, in: reader{from: c}}
}

// Dial opens a Decode call of the process, whose pid it checks against owner: a path leads to
// any server that this user may use, and the frames are for the decoder alone.
func Dial(ctx context.Context, path string, owner int) (*Conn, error) {
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	u := c.(*net.UnixConn)
	if err := ownedBy(u, owner); err != nil {
		return nil, errors.Join(fmt.Errorf("plane: %w", err), u.Close())
	}
	return newConn(u), nil
}

// Send sends a request. The buffers of its batches must stay as they are until the response is
// received.
func (c *Conn) Send(r *wire.Request) (err error) {
	c.pieces, c.own, err = r.Pieces(append(c.pieces[:0], c.length[:]), c.own[:0])
	if err != nil {
		return err
	}
	err = c.write()
	clear(c.pieces) // of the frames
	if cap(c.own) > keep {
		c.own = nil
	}
	return err
}

// Recv receives the response to the next request. It is valid until the next Recv.
func (c *Conn) Recv(r *wire.Response) error {
	b, err := c.in.next()
	if err != nil {
		return err
	}
	r.SetBytes(b)
	return nil
}

// write writes the pieces of a message, of which the first is its length.
func (c *Conn) write() error {
	size := -lengthSize
	for _, p := range c.pieces {
		size += len(p)
	}
	if size > wire.MaxMessage {
		return fmt.Errorf("plane: a message of %d bytes, the limit is %d", size, wire.MaxMessage)
	}
	binary.BigEndian.PutUint32(c.length[:], uint32(size))
	buffers := net.Buffers(c.pieces)
	_, err := buffers.WriteTo(c.conn)
	return err
}

// CloseSend ends the requests: the decoder answers those that it has, and ends the call.
func (c *Conn) CloseSend() error { return c.conn.CloseWrite() }

// Close ends the call; requests in flight are lost.
func (c *Conn) Close() { _ = c.conn.Close() }

// Call is a Conn as the decoder process sees it.
type Call struct{ conn *Conn }

// Recv receives the next request, which is valid until its response is sent. The error is io.EOF
// after the last one.
func (c Call) Recv(r *wire.Request) error {
	b, err := c.conn.in.next()
	if err != nil {
		return err
	}
	return r.Read(b)
}

// Send sends the response to the last request.
func (c Call) Send(r *wire.Response) error {
	c.conn.pieces = append(c.conn.pieces[:0], c.conn.length[:], r.Bytes())
	return c.conn.write()
}

// Serve listens at path and handles each call in a goroutine of its own. It returns what ends
// the calls and waits for them.
func Serve(path string, handle func(Call)) (io.Closer, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, err
	}
	s := &server{listener: l, open: make(map[*Conn]bool)}
	s.calls.Go(func() { s.accept(handle) })
	return s, nil
}
