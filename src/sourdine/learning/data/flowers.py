"""102 flowers as they are published: `jpg/image_00001.jpg`, ..., `imagelabels.mat` and `setid.mat`.

The first file of MATLAB gives each image the number of its class, from 1 on; the other says which images are
to learn from (trnid), to choose settings by (valid) and to judge by (tstid). Both count as public, but for
the labels of images that are learnt from.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.images import (
    NOBODY,
    Listed,
    ShowProgress,
    class_names,
    judged,
    read_images,
    refuse_twice,
)
from sourdine.learning.data.labelled import Labelled, Parts, content
from sourdine.learning.data.pictures import decoder

LABELS, SETS, IMAGES = "imagelabels.mat", "setid.mat", "jpg"
LEARN, CHOOSE, JUDGE = "trnid", "valid", "tstid"
CLASSES = 102
_MOST_BYTES = 1 << 18  # of a file that is published with 15,000; what it expands to stays bounded


def is_flowers_folder(folder: Path) -> bool:
    """Whether a folder holds one of the two files of MATLAB."""
    return any((folder / name).exists() for name in (LABELS, SETS))


def read_flowers_folder(
    folder: Path,
    side: int = 32,
    *,
    grey: bool = False,
    learn: Sequence[str] = (LEARN,),
    judge: Sequence[str] = (JUDGE,),
    progress: ShowProgress = iter,
) -> Parts:
    """The images of some of the three sets to learn from, and of others to judge by.

    An image that cannot be read or is not there, and a label that is no class, count for nothing. Classes are
    called by their numbers, or as a file cat_to_name.json says.
    """
    side = check.integer("read_flowers_folder", "side", side, 4, 1 << 12)
    if not (folder / IMAGES).is_dir():
        raise InvalidParameter(
            f"The folder {folder} has no folder {IMAGES} with the images. Unpack 102flowers.tgz there."
        )
    labels = _numbers(folder / LABELS, "labels")
    chosen = [_places(folder / SETS, names, len(labels)) for names in (learn, judge)]
    if len(both := np.intersect1d(chosen[0], chosen[1])):
        raise InvalidParameter(
            f"The file {folder / SETS} has {len(both):,} images both to learn from and to judge by. What is "
            "judged by counts as public, so it cannot be protected. Fetch the file again."
        )
    decode = decoder(side, grey=grey)
    listed = [_listed(folder, places, labels) for places in chosen]
    refuse_twice([path for images in listed for path, _ in images])
    classes = class_names(folder, [str(number) for number in range(1, CLASSES + 1)])
    train, test = (Labelled(*read_images(images, decode, progress), classes) for images in listed)
    return Parts(train, judged(test))


def _listed(folder: Path, places: NDArray[np.int64], labels: NDArray[np.int64]) -> Listed:
    return [
        (folder / IMAGES / f"image_{place:05d}.jpg", label - 1 if 1 <= label <= CLASSES else NOBODY)
        for place, label in zip(places.tolist(), labels[places - 1].tolist(), strict=True)
    ]


def _places(path: Path, names: Sequence[str], size: int) -> NDArray[np.int64]:
    """The numbers of the images in some sets, each once."""
    numbers = np.unique(np.concatenate([_numbers(path, name) for name in names]))
    if not len(numbers) or numbers[0] < 1 or numbers[-1] > size:
        raise InvalidParameter(
            f"The sets {', '.join(names)} of {path} must hold numbers of images from 1 to {size:,}, for so "
            "many labels there are. Fetch both files again."
        )
    return numbers


def _numbers(path: Path, name: str) -> NDArray[np.int64]:
    """A row of whole numbers out of a file of MATLAB."""
    from scipy.io import loadmat

    raw = content(path)
    try:
        if len(raw) > _MOST_BYTES:
            raise ValueError("too large")
        array = np.asarray(loadmat(str(path), appendmat=False, variable_names=[name])[name])
        if array.dtype.kind not in "iuf" or array.size != max(array.shape, default=0):
            raise ValueError("no row of numbers")
        row = array.ravel()
        whole = row.astype(np.int64)
        if not np.array_equal(whole, row):
            raise ValueError("no whole numbers")
    except Exception:  # what is read is damaged in more ways than its reader has errors for
        raise InvalidParameter(
            f"The file {path} is cut short, damaged, or holds no row of whole numbers '{name}' in MATLAB's "
            "version 5. Fetch it again from where 102 flowers is published."
        ) from None
    return whole
