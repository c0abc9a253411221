// Package host runs decoder processes: it verifies the executable, launches it over
// go-plugin, and opens the RPCs on which frames are decoded. Settings enter, a running
// Process leaves. It is the only package that uses go-plugin's client.
//
// These settings differ from go-plugin's defaults:
//
//   - net/rpc is refused; gRPC is the only plugin mode.
//   - The process does not inherit our environment, which holds secrets; it gets the
//     variables that the configuration lists.
//   - Message limits are set on both sides. go-plugin raises only the client's, so
//     that a frame over 4 MiB would fail in the plugin.
//   - The socket lies in a directory of mode 0700 of our own. go-plugin creates one
//     only for a RunnerFunc; without it the socket lands in /tmp, so the process gets
//     the directory in the environment variable that it reads. TLS on that socket
//     would cost more than half of the throughput for nothing; AutoMTLS turns it on.
//   - The stderr of the process is read here (stderr): go-plugin parses it with a type
//     assertion that a plugin can make panic.
//   - The process is in a session of its own, so that Ctrl-C in a terminal lets us
//     drain first, and on Linux the kernel ends it when we end.
//   - On Linux the process that is launched is this executable, which becomes the decoder in
//     a cell (core/sandbox). It is one process by default; with Rules.Processes it is the first
//     of a PID namespace where the kernel lets us make one, else its group ends with it.
package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"

	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/earshot-dev/earshot/core/decoder"
	"github.com/earshot-dev/earshot/core/frame"
	"github.com/earshot-dev/earshot/core/internal/plane"
	"github.com/earshot-dev/earshot/core/internal/wire"
	pb "github.com/earshot-dev/earshot/core/proto/earshot/decoder/v1"
	"github.com/earshot-dev/earshot/core/sandbox"
)

// Settings of a decoder process.
type Settings struct {
	Name         string   // the format, for messages
	Path         string   // the executable
	Args         []string // bundled decoders are this executable with arguments
	SHA256       string   // hex; empty: not verified
	Env          []string // KEY=VALUE; its whole environment besides the handshake
	SocketDir    string   // an existing directory that only we can enter
	StartTimeout time.Duration
	CallTimeout  time.Duration // of Describe and Check; 10 s
	MemoryLimit  int64         // resident bytes above which OverLimit returns an error; 0: none
	AutoMTLS     bool
	GRPC         bool          // frames and messages cross over gRPC, as with AutoMTLS; else over a socket of their own (plane) where the process listens
	Cell         []string      // the arguments with which this executable enters a cell, which is added; empty: no cell
	Rules        sandbox.Rules // rights beside those that every decoder has
	Off          bool          // a cell without rules
	Stderr       io.Writer     // the process's own stderr, raw; nil drops it
	Logger       *slog.Logger

	noNamespace bool // the kernel refuses them
}

// Process is a running decoder process.
type Process struct {
	settings Settings
	client   *goplugin.Client
	conn     *grpc.ClientConn
	cmd      *exec.Cmd
	cleanup  func()
	info     decoder.Info
	pid      int
	// socket is where the process may listen for calls of Decode; empty: gRPC has them.
	socket string
	// snapshots: its decoders resume from snapshots.
	snapshots bool
}

// pauses are before the second launch and the third of a process that ends before it has answered: it may have
// been killed, and one that cannot run fails each time with the same error.
var pauses = [...]time.Duration{50 * time.Millisecond, 200 * time.Millisecond}

// Start launches the process and reads its Info.
func Start(ctx context.Context, s Settings) (*Process, error) {
	if s.Logger == nil {
		s.Logger = slog.New(slog.DiscardHandler)
	}
	for n := 0; ; n++ {
		p, exited, err := launch(ctx, s)
		if err == nil || !exited || n == len(pauses) {
			return p, err
		}
		s.Logger.Warn("decoder ended before it answered; launched again", "decoder", s.Name, "error", err)
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pauses[n]):
		}
	}
}

func launch(ctx context.Context, s Settings) (p *Process, exited bool, err error) {
	if s.StartTimeout <= 0 {
		s.StartTimeout = 10 * time.Second
	}
	if s.CallTimeout <= 0 {
		s.CallTimeout = 10 * time.Second
	}
	cmd, socket, cleanup, err := s.command()
	if err != nil {
		return nil, false, fmt.Errorf("decoder %s: %w", s.Name, err)
	}
	log := newBridge(s.Logger, s.Name)
	stderr := &stderr{log: log, tee: s.Stderr}
	config := &goplugin.ClientConfig{
		HandshakeConfig:  wire.Handshake(),
		Plugins:          goplugin.PluginSet{wire.PluginName: glue{}},
		Cmd:              cmd,
		AllowedProtocols: []goplugin.Protocol{goplugin.ProtocolGRPC},
		SkipHostEnv:      true,
		AutoMTLS:         s.AutoMTLS,
		StartTimeout:     s.StartTimeout,
		Stderr:           stderr,
		Logger:           log,
		GRPCDialOptions: []grpc.DialOption{
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(wire.NewCodec()),
				grpc.MaxCallRecvMsgSize(wire.MaxMessage), grpc.MaxCallSendMsgSize(wire.MaxMessage)),
			grpc.WithInitialWindowSize(1 << 20),
			grpc.WithInitialConnWindowSize(2 << 20),
			grpc.WithReadBufferSize(256 << 10),
			grpc.WithWriteBufferSize(256 << 10),
		},
	}
	p = &Process{settings: s, client: goplugin.NewClient(config), cmd: cmd, cleanup: cleanup, socket: socket}
	began := time.Now()
	if err := p.start(ctx); err != nil {
		// Its pipes close before its end is seen: an early error shows that it exited.
		exited = time.Since(began) < s.StartTimeout
		p.Abort()
		if s.namespace() && cmd.Process == nil && refusesNamespaces(err) {
			s.noNamespace = true
			return launch(ctx, s)
		}
		if s.confined() && len(s.Args) == 0 { // no bundled one
			if last := stderr.last.Load(); last != nil {
				err = fmt.Errorf("%w\nits stderr ends with: %s", err, *last)
			}
			err = fmt.Errorf("%w\n%s", err, s.sandboxHint())
		}
		return nil, exited, fmt.Errorf("decoder %s: %w", s.Name, err)
	}
	return p, false, nil
}

// confined reports whether the process runs under rules.
func (s *Settings) confined() bool { return len(s.Cell) > 0 && sandbox.Cells && !s.Off }

// namespace reports whether the process is to be the first of a PID namespace.
func (s *Settings) namespace() bool { return s.confined() && s.Rules.Processes && !s.noNamespace }

// sandboxHint is how the configuration grants a right that a cell refuses.
func (s *Settings) sandboxHint() string {
	return fmt.Sprintf("it runs in a sandbox: plugins.%s.sandbox of the configuration grants files to read (read) and to write (write), "+
		"sockets (network) and children (processes); an interpreter's modules outside of the system's folders are files to read", s.Name)
}

// command returns the command that becomes the decoder, the socket on which it may serve Decode, and a function
// that releases its socket directory and its executable.
func (s *Settings) command() (cmd *exec.Cmd, socket string, cleanup func(), err error) {
	dir, err := os.MkdirTemp(s.SocketDir, "") // other decoders have theirs
	if err != nil {
		return nil, "", nil, err
	}
	var f *os.File
	if filepath.Base(s.Path) == s.Path { // a command, as node
		s.Path, err = exec.LookPath(s.Path)
	}
	if err == nil {
		f, err = open(*s)
	}
	if err != nil {
		return nil, "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	release := func() { _ = errors.Join(f.Close(), os.RemoveAll(dir)) }
	path, args := s.Path, s.Args
	switch {
	case len(s.Cell) > 0 && sandbox.Cells:
		c := sandbox.Cell{Rules: s.Rules, Off: s.Off, Pinned: s.SHA256 != "", Path: s.Path, Args: s.Args}
		c.Write = append(slices.Clone(c.Write), dir)
		text, _ := json.Marshal(c) // of texts and booleans
		path, args = "/proc/self/exe", append(slices.Clone(s.Cell), string(text))
	case s.SHA256 != "":
		path = here(f)
	}
	cmd = exec.Command(path, args...)
	cmd.Args[0] = s.Path
	cmd.Env = append([]string{goplugin.EnvUnixSocketDir + "=" + dir, "TMPDIR=" + dir}, s.Env...)
	if !s.GRPC && !s.AutoMTLS && runtime.GOOS != "windows" {
		socket = filepath.Join(dir, "decode")
		cmd.Env = append(cmd.Env, plane.Env+"="+socket)
	}
	inherit(cmd, f)
	cmd.SysProcAttr = processAttributes(s.namespace())
	return cmd, socket, release, nil
}

// refusesNamespaces reports the errors of a kernel, or of a policy, that makes no namespace for us.
func refusesNamespaces(err error) bool {
	for _, e := range []error{syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EINVAL, syscall.EUSERS} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

func (p *Process) start(ctx context.Context) error {
	rpc, err := p.client.Client()
	if err != nil {
		return fmt.Errorf("start %s: %w", p.settings.Path, err)
	}
	p.pid = p.cmd.Process.Pid
	raw, err := rpc.Dispense(wire.PluginName)
	if err != nil {
		return fmt.Errorf("dispense: %w", err)
	}
	p.conn = raw.(*grpc.ClientConn)
	d, err := call[pb.DescribeResponse](ctx, p, "Describe", &pb.DescribeRequest{})
	if err != nil {
		return err
	}
	p.info = decoder.Info{
		Name: d.GetName(), Version: d.GetVersion(), Revision: d.GetRevision(), Summary: d.GetSummary(),
		MetadataFiles: d.GetMetadataFiles(), Documents: d.GetDocuments(), Options: []byte(d.GetOptionsSchema()), Reload: d.GetReload(), LocalIDs: d.GetLocalIds(),
		Resume: []byte(d.GetResume()), Pages: []byte(d.GetPages()), Tables: []byte(d.GetTables()),
	}
	p.snapshots = d.GetSnapshots()
	for _, t := range d.GetTransports() {
		p.info.Transports = append(p.info.Transports, frame.Kind(t))
	}
	return nil
}

// Info is the decoder's description of itself.
func (p *Process) Info() decoder.Info { return p.info }

// Snapshots reports whether its decoders resume from snapshots.
func (p *Process) Snapshots() bool { return p.snapshots }

// Pid is the process id.
func (p *Process) Pid() int { return p.pid }

// Check returns the problems of a source's options; none when they are valid.
func (p *Process) Check(ctx context.Context, options string) ([]string, error) {
	r, err := call[pb.CheckResponse](ctx, p, "Check", &pb.CheckRequest{Options: options})
	if err != nil {
		return nil, fmt.Errorf("decoder %s: %w", p.settings.Name, err)
	}
	return r.GetProblems(), nil
}

// CallTimeout is how long a call may take.
func (p *Process) CallTimeout() time.Duration { return p.settings.CallTimeout }

func call[Resp any](ctx context.Context, p *Process, method string, req any) (*Resp, error) {
	ctx, cancel := context.WithTimeout(ctx, p.settings.CallTimeout)
	defer cancel()
	resp := new(Resp)
	if err := p.conn.Invoke(ctx, "/earshot.decoder.v1.Decoder/"+method, req, resp); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	return resp, nil
}

// glue is the client's half of the go-plugin glue: it returns the connection.
type glue struct {
	goplugin.NetRPCUnsupportedPlugin
}

func (glue) GRPCServer(*goplugin.GRPCBroker, *grpc.Server) error {
	return errors.New("host: the host serves nothing")
}

func (glue) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return c, nil
}
