package scripts

import (
	"strconv"
	"strings"
)

// MaxSlots is the maximum size of a semaphore.
const MaxSlots = 100

// A Slot is one of the locks of a semaphore.
type Slot struct {
	Number int // from 1 to Of; 0: not a slot
	Of     int // the size of the semaphore
}

// slotMark separates, in the name of a slot, the name of the semaphore from the slot.
const slotMark = "\xff"

// Name returns the name under which a client knows a slot of a semaphore. The name is not UTF-8, so it differs from
// each name that a caller may lock: see CheckName.
func (s Slot) Name(semaphore string) string {
	return semaphore + slotMark + s.String()
}

// String returns the number and the size, as in "2/3".
func (s Slot) String() string { return strconv.Itoa(s.Number) + "/" + strconv.Itoa(s.Of) }

// parseSlot parses the result of Slot.String. It returns the zero Slot for any other text.
func parseSlot(text string) (s Slot) {
	number, of, _ := strings.Cut(text, "/")
	s.Number, _ = strconv.Atoi(number)
	s.Of, _ = strconv.Atoi(of)
	if s.Number < 1 || s.Number > s.Of || s.Of > MaxSlots || s.String() != text {
		return Slot{}
	}
	return s
}

// CutSlot returns the name that the caller uses: of a slot, the name of its semaphore. It also returns the slot, which
// is the zero Slot for other names.
func CutSlot(name string) (string, Slot) {
	semaphore, slot, found := strings.Cut(name, slotMark)
	if !found {
		return name, Slot{}
	}
	return semaphore, parseSlot(slot)
}

// kindSemaphore is the kind of a semaphore, before its size.
const kindSemaphore = "semaphore "

// SemaphoreSize returns the size of the semaphore of which a name is according to its kind, or 0 for other kinds.
func SemaphoreSize(kind string) int {
	text, ok := strings.CutPrefix(kind, kindSemaphore)
	size, err := strconv.Atoi(text)
	if !ok || err != nil || size < 1 || size > MaxSlots {
		return 0
	}
	return size
}
