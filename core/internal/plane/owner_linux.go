package plane

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// ownedBy returns an error when the socket at the other end was not made in the session that the
// process pid began.
func ownedBy(c *net.UnixConn, pid int) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var peer *unix.Ucred
	var session int
	if err1 := raw.Control(func(fd uintptr) {
		if peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			session, err = unix.Getsid(int(peer.Pid))
		}
	}); err1 != nil {
		return err1
	}
	if err != nil {
		return fmt.Errorf("who listens: %w", err)
	}
	if session != pid {
		return fmt.Errorf("process %d listens, which is not of the session of the decoder, %d", peer.Pid, pid)
	}
	return nil
}
