package loopback

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// The kernel's interface to look at sockets, linux/sock_diag.h and linux/inet_diag.h.
const (
	sockDiagByFamily = 20
	requestSize      = 56 // struct inet_diag_req_v2
	answerSize       = 72 // struct inet_diag_msg
	answerState      = 1  // where its parts are
	answerUser       = 64
	answerInode      = 68
	stateListen      = 10
)

// owner returns the user of the socket that has these two ends, the first of which is its own. known is false if this
// kernel has none.
func owner(own, other netip.AddrPort) (user uint32, known bool, err error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, false, fmt.Errorf("loopback: ask for sockets: %w", err)
	}
	defer unix.Close(fd)
	patience := unix.Timeval{Sec: 1}
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience); err != nil {
		return 0, false, fmt.Errorf("loopback: ask for sockets: %w", err)
	}
	if err := unix.Sendto(fd, question(own, other), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, false, fmt.Errorf("loopback: ask for a socket: %w", err)
	}
	var b [4 << 10]byte
	n, _, err := unix.Recvfrom(fd, b[:], 0)
	if err != nil {
		return 0, false, fmt.Errorf("loopback: the answer about a socket: %w", err)
	}
	head := binary.NativeEndian
	switch answer := b[:n]; {
	case n >= unix.NLMSG_HDRLEN+4 && head.Uint16(answer[4:]) == unix.NLMSG_ERROR:
		switch e := unix.Errno(-int32(head.Uint32(answer[unix.NLMSG_HDRLEN:]))); e {
		case unix.ENOENT:
			return 0, false, nil
		default:
			return 0, false, fmt.Errorf("loopback: the answer about a socket: %w", e)
		}
	case n < unix.NLMSG_HDRLEN+answerSize || head.Uint16(answer[4:]) != sockDiagByFamily:
		return 0, false, errors.New("loopback: the answer about a socket is none")
	default:
		answer = answer[unix.NLMSG_HDRLEN:]
		switch {
		case answer[answerState] == stateListen: // there is no connection
			return 0, false, nil
		case head.Uint32(answer[answerInode:]) == 0: // and no user
			return 0, false, errors.New("loopback: the process at the other end has closed its socket")
		}
		return head.Uint32(answer[answerUser:]), true, nil
	}
}

// question is a netlink message that asks for one TCP socket.
func question(own, other netip.AddrPort) []byte {
	own, other = netip.AddrPortFrom(own.Addr().Unmap(), own.Port()), netip.AddrPortFrom(other.Addr().Unmap(), other.Port())
	b := make([]byte, unix.NLMSG_HDRLEN+requestSize)
	head := binary.NativeEndian
	head.PutUint32(b, uint32(len(b)))
	head.PutUint16(b[4:], sockDiagByFamily)
	head.PutUint16(b[6:], unix.NLM_F_REQUEST)
	r := b[unix.NLMSG_HDRLEN:]
	r[0], r[1] = unix.AF_INET6, unix.IPPROTO_TCP
	if own.Addr().Is4() {
		r[0] = unix.AF_INET
	}
	head.PutUint32(r[4:], 1<<32-1) // in any state
	binary.BigEndian.PutUint16(r[8:], own.Port())
	binary.BigEndian.PutUint16(r[10:], other.Port())
	copy(r[12:28], own.Addr().AsSlice())
	copy(r[28:44], other.Addr().AsSlice())
	head.PutUint64(r[48:], 1<<64-1) // no cookie
	return b
}
