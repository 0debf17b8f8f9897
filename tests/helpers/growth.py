"""Whether time grows with the length alone, on a machine of any speed and however busy."""

from time import process_time

LENGTHS = (62_500, 250_000)


def assert_linear(read, bits):
    """Read replies of two lengths, made of each bit: four times the length is no eightfold work.

    Where the time grows with the square, it is sixteenfold. What a machine does beside this is in
    no processor time of ours.
    """
    seconds = []
    for length in LENGTHS:
        start = process_time()
        for bit in bits:
            read(bit * (length // len(bit)))
        seconds.append(process_time() - start)
    assert seconds[1] < 8 * max(seconds[0], 0.05), seconds
