"""A window of a design, so that a test asks a few of its trials."""

from ingroup.design import Design


class Few(Design):
    """Trials ``start`` to ``stop`` of a design, with the design's fingerprint and trial numbers."""

    def __init__(self, whole, start, stop):
        super().__init__(whole.blocks)
        self.whole = whole
        self.window = range(start, stop)

    def __len__(self):
        return len(self.window)

    def __getitem__(self, index):
        return self.whole[self.window[index]]
