package store

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ownPeer returns an error when the process at the other end is another user's.
func ownPeer(c net.Conn) error {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return errors.New("not a Unix socket")
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	if e := raw.Control(func(fd uintptr) { peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); e != nil {
		return e
	}
	if err != nil {
		return fmt.Errorf("peer of the socket: %w", err)
	}
	if int(peer.Uid) != os.Geteuid() {
		return fmt.Errorf("the socket is answered by a process of user %d", peer.Uid)
	}
	return nil
}
