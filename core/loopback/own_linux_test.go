package loopback

import (
	"net"
	"os"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// accepted returns the server's end of a connection that connect makes to an address of loopback.
func accepted(t *testing.T, address string, connect func(*net.TCPAddr) (net.Conn, error)) net.Conn {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Skip(err)
	}
	defer l.Close()
	client, err := connect(l.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func dial(to *net.TCPAddr) (net.Conn, error) { return net.DialTCP("tcp", nil, to) }

// mapped connects to an address of IPv4 by a socket of IPv6, as Java does.
func mapped(to *net.TCPAddr) (net.Conn, error) {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "socket")
	defer f.Close()
	if err := unix.Connect(fd, &unix.SockaddrInet6{Port: to.Port, Addr: [16]byte(to.IP.To16())}); err != nil {
		return nil, err
	}
	return net.FileConn(f)
}

// foreign connects as another user: a socket is of the user of the thread that makes it.
func foreign(connect func(*net.TCPAddr) (net.Conn, error)) func(*net.TCPAddr) (net.Conn, error) {
	return func(to *net.TCPAddr) (net.Conn, error) {
		const nobody = 65534
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setfsuid(nobody); err != nil {
			return nil, err
		}
		defer func() { _ = unix.Setfsuid(os.Geteuid()) }()
		return connect(to)
	}
}

// TestOwn: connections of this user pass, and those of another one do not, whichever address and socket they have.
func TestOwn(t *testing.T) {
	for name, c := range map[string]struct {
		address string
		connect func(*net.TCPAddr) (net.Conn, error)
	}{"IPv4": {"127.0.0.1:0", dial}, "IPv6": {"[::1]:0", dial}, "another address": {"127.3.2.1:0", dial}, "mapped": {"127.0.0.1:0", mapped}} {
		t.Run(name, func(t *testing.T) {
			if err := Own(accepted(t, c.address, c.connect)); err != nil {
				t.Error(err)
			}
			if os.Geteuid() != 0 {
				t.Skip("only root can be another user")
			}
			other := accepted(t, c.address, foreign(c.connect))
			if err := Own(other); err == nil || !strings.Contains(err.Error(), "of user 65534") {
				t.Errorf("another user: %v", err)
			}
			t.Setenv("SUDO_UID", "65534")
			if err := Own(other); err != nil {
				t.Errorf("who became this user by sudo: %v", err)
			}
		})
	}
}

// TestOwnOfTheDead: a socket that its process has closed is of no user.
func TestOwnOfTheDead(t *testing.T) {
	var client net.Conn
	c := accepted(t, "127.0.0.1:0", func(to *net.TCPAddr) (_ net.Conn, err error) {
		client, err = dial(to)
		return client, err
	})
	if _, err := client.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	client.Close()
	if err := Own(c); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Error(err)
	}
}
