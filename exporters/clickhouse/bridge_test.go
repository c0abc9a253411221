package clickhouse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ClickHouse/ch-go/compress"
	chproto "github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2/lib/column"
	"github.com/ClickHouse/clickhouse-go/v2/lib/proto"
)

// revision is the driver's revision of the protocol.
const revision = proto.DBMS_TCP_PROTOCOL_VERSION

// bridge speaks the native protocol to the driver and HTTP to the store, which
// has no native port. So the native way of the exporter is tested against the
// real engine.
type bridge struct {
	t      *testing.T
	client *http.Client // of the store, for any address
}

// nativeDSN starts a bridge to the store and returns where it listens.
func nativeDSN(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	dsn := storeDSN(t)
	opts, err := options(ConnSettings{DSN: dsn})
	if err != nil {
		t.Fatal(err)
	}
	b := &bridge{t: t, client: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
		if opts.DialContext == nil { // a server by TCP
			return (&net.Dialer{}).DialContext(ctx, "tcp", opts.Addr[0])
		}
		return opts.DialContext(ctx, addr)
	}}}}
	t.Cleanup(func() { _ = l.Close(); wg.Wait(); b.client.CloseIdleConnections() })
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				if err := b.serve(conn); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
					t.Errorf("bridge: %v", err)
				}
			})
		}
	})
	return "clickhouse://" + l.Addr().String()
}

func (b *bridge) serve(conn net.Conn) error {
	in := chproto.NewReader(conn)
	database, err := b.hello(conn, in)
	if err != nil {
		return err
	}
	var out chproto.Buffer
	for {
		if _, err := conn.Write(out.Buf); err != nil {
			return err
		}
		out.Reset()
		code, err := in.UVarInt()
		if err != nil {
			return err
		}
		switch code {
		case proto.ClientPing:
			out.PutByte(proto.ServerPong)
		case proto.ClientQuery:
			if err := b.query(conn, in, &out, database); err != nil {
				return err
			}
		default:
			return fmt.Errorf("packet %d", code)
		}
	}
}

func (b *bridge) hello(conn net.Conn, in *chproto.Reader) (database string, err error) {
	var out chproto.Buffer
	if _, err := in.UVarInt(); err != nil {
		return "", err
	}
	var hello chproto.ClientHello
	if err := hello.Decode(in); err != nil {
		return "", err
	}
	server := chproto.ServerHello{Name: "bridge", Major: 26, Minor: 7, Revision: revision, Timezone: "UTC"}
	server.EncodeAware(&out, revision)
	if _, err := conn.Write(out.Buf); err != nil {
		return "", err
	}
	_, err = in.Str() // the addendum: a quota key
	return hello.Database, err
}

func (b *bridge) query(conn net.Conn, in *chproto.Reader, out *chproto.Buffer, database string) error {
	var q chproto.Query
	if err := q.DecodeAware(in, revision); err != nil {
		return err
	}
	settings := url.Values{"client_protocol_version": {fmt.Sprint(revision)}, "default_format": {"Native"}}
	if database != "" {
		settings.Set("database", database)
	}
	for _, s := range q.Settings {
		settings.Set(s.Key, s.Value)
	}
	for _, p := range q.Parameters {
		settings.Set("param_"+p.Key, strings.Trim(p.Value, "'"))
	}
	compressed := q.Compression == chproto.CompressionEnabled
	if _, err := b.data(in, compressed); err != nil { // the end of the external tables
		return err
	}
	if !strings.HasPrefix(q.Body, "INSERT INTO") || strings.Contains(q.Body, "VALUES (") || strings.Contains(q.Body, "\nSELECT ") {
		return b.answer(out, settings, q.Body, compressed)
	}
	sample, err := b.sample(q.Body, settings)
	if err != nil {
		return b.exception(out, err)
	}
	b.send(out, sample, compressed)
	if _, err := conn.Write(out.Buf); err != nil {
		return err
	}
	out.Reset()
	var rows chproto.Buffer
	for {
		block, err := b.data(in, compressed)
		if err != nil {
			return err
		}
		if len(block.Columns) == 0 {
			break
		}
		if err := block.Encode(&rows, 0); err != nil {
			return err
		}
	}
	settings.Set("query", q.Body)
	return b.answer(out, settings, string(rows.Buf), compressed)
}

// data reads a packet of data.
func (b *bridge) data(in *chproto.Reader, compressed bool) (*proto.Block, error) {
	if code, err := in.UVarInt(); err != nil || code != proto.ClientData {
		return nil, fmt.Errorf("packet %d instead of data: %w", code, err)
	}
	if _, err := in.Str(); err != nil {
		return nil, err
	}
	if compressed {
		in.EnableCompression()
		defer in.DisableCompression()
	}
	block := &proto.Block{ServerContext: &column.ServerContext{Timezone: time.UTC}}
	return block, block.Decode(in, revision)
}

// sample returns an empty block of the columns that an INSERT names.
func (b *bridge) sample(insert string, settings url.Values) (*proto.Block, error) {
	table, rest, _ := strings.Cut(strings.TrimPrefix(insert, "INSERT INTO "), " (")
	names, _, _ := strings.Cut(rest, ")")
	return b.columns(settings, "SELECT "+names+" FROM "+table)
}

// columns returns an empty block of the columns of a query.
func (b *bridge) columns(settings url.Values, sql string) (*proto.Block, error) {
	answer, err := b.post(settings, "DESCRIBE ("+sql+") FORMAT TabSeparatedRaw")
	if err != nil {
		return nil, err
	}
	block := &proto.Block{ServerContext: &column.ServerContext{Timezone: time.UTC}}
	for line := range strings.Lines(string(answer)) {
		fields := strings.Split(line, "\t")
		if err := block.AddColumn(fields[0], column.Type(fields[1])); err != nil {
			return nil, err
		}
	}
	return block, nil
}

// answer sends a statement to the store and its result to the driver.
func (b *bridge) answer(out *chproto.Buffer, settings url.Values, body string, compressed bool) error {
	result, err := b.post(settings, body)
	if err != nil {
		return b.exception(out, err)
	}
	if len(result) == 0 && strings.HasPrefix(strings.TrimSpace(body), "SELECT") {
		header, err := b.columns(settings, body)
		if err != nil {
			return err
		}
		b.send(out, header, compressed)
	}
	in := chproto.NewReader(bytes.NewReader(result))
	for {
		block := &proto.Block{ServerContext: &column.ServerContext{Timezone: time.UTC}}
		if err := block.Decode(in, revision); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		b.send(out, block, compressed)
	}
	out.PutByte(proto.ServerEndOfStream)
	return nil
}

func (b *bridge) send(out *chproto.Buffer, block *proto.Block, compress bool) {
	out.PutByte(proto.ServerData)
	out.PutString("")
	var buf chproto.Buffer
	err := block.EncodeHeader(&buf, revision)
	if block.Rows() > 0 {
		buf.Reset()
		err = block.Encode(&buf, revision)
	} else { // the driver would write states that it does not read
		for _, c := range block.Columns {
			buf.PutString(c.Name())
			buf.PutString(string(c.Type()))
			buf.PutBool(false)
		}
	}
	if err != nil {
		b.t.Errorf("bridge: %v", err)
	}
	if compress {
		buf.Buf = compressed(buf.Buf)
	}
	out.Buf = append(out.Buf, buf.Buf...)
}

func (b *bridge) post(settings url.Values, body string) ([]byte, error) {
	res, err := b.client.Post("http://store/?"+settings.Encode(), "", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode != http.StatusOK {
		var code int
		_, _ = fmt.Sscanf(string(answer), "Code: %d.", &code)
		err = &refusal{chproto.Exception{Code: chproto.Error(code), Name: "DB::Exception", Message: string(answer)}}
	}
	return answer, err
}

func (b *bridge) exception(out *chproto.Buffer, err error) error {
	var ex *refusal
	if !errors.As(err, &ex) {
		return err
	}
	out.PutByte(proto.ServerException)
	ex.EncodeAware(out, revision)
	return nil
}

type refusal struct{ chproto.Exception }

func (r *refusal) Error() string { return r.Message }

func compressed(b []byte) []byte {
	w := compress.NewWriter(compress.LevelZero, compress.LZ4)
	if err := w.Compress(b); err != nil {
		return nil
	}
	return w.Data
}
