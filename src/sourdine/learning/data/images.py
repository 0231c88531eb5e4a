"""Folders of images, one folder for each class; its name is that of the class.

What one file holds changes no other example and stops nothing, as a record of a table does not: an image that
cannot be read stays in its place as an example of no class, which counts for nothing.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.files import unreadable
from sourdine.learning.data.labelled import Labelled, Parts, content, printable, scaled
from sourdine.learning.data.pictures import Decode, decoder

ENDINGS = (".png", ".jpg", ".jpeg")
_JUDGES = ("test", "valid", "val")  # the first that is there is taken to judge by
NAMES = "cat_to_name.json"
NOBODY = -1  # the class of an example that counts for nothing
Listed = Sequence[tuple[Path, int]]
ShowProgress = Callable[[Listed], Iterable[tuple[Path, int]]]


def is_image_folder(folder: Path) -> bool:
    """Whether a folder holds folders with images."""
    top = folder / "train" if (folder / "train").is_dir() else folder
    return any(_images(each) for each in _classes(top))


def read_image_folder(
    folder: Path, side: int = 32, *, grey: bool = False, progress: ShowProgress = iter
) -> Parts:
    """The images in `train` and `test` below a folder, or in the folder itself, to learn from.

    Without `test`, those in `valid` are there to judge by. Folders that are named by numbers may have the
    names of their classes in a file cat_to_name.json beside them, as 102 flowers come. All images are scaled
    to `side` pixels in height and width, which is declared. An image that cannot be read counts for nothing,
    and nobody is told: an error would tell of one person's image.
    """
    side = check.integer("read_image_folder", "side", side, 4, 1 << 12)
    decode = decoder(side, grey=grey)
    parted = (folder / "train").is_dir()
    judges = [folder / part for part in _JUDGES if parted and (folder / part).is_dir()][:1]
    listed = [_list(each) for each in (folder / "train" if parted else folder, *judges)]
    refuse_twice([path for images, _ in listed for path, _ in images])
    train, *test = (read_images(images, decode, progress) for images, _ in listed)
    return Parts(Labelled(*train, listed[0][1]), judged(Labelled(*test[0], listed[1][1])) if test else None)


def read_images(listed: Listed, decode: Decode, progress: ShowProgress) -> tuple[torch.Tensor, torch.Tensor]:
    """The images of some files with their classes; of none where a file holds no image."""
    pairs = [(decode(path), place) for path, place in progress(listed)]
    blank = next((torch.zeros_like(image) for image, _ in pairs if image is not None), None)
    if blank is None:
        raise InvalidParameter(
            f"None of the {len(listed):,} images can be read, such as {listed[0][0]}. Check what the files "
            "hold."
        )
    inputs = torch.stack([blank if image is None else image for image, _ in pairs])
    targets = torch.tensor([NOBODY if image is None else place for image, place in pairs], dtype=torch.int64)
    return scaled(inputs), targets


def judged(public: Labelled) -> Labelled:
    """Those to judge by, which are public: without what cannot be read."""
    known = public.targets != NOBODY
    return Labelled(public.inputs[known], public.targets[known], public.classes)


def refuse_twice(paths: Sequence[Path]) -> None:
    """Refuse a file under two names: its person would count twice, or be judged by while being protected."""
    files: dict[tuple[int, int], Path] = {}
    for path in paths:
        try:
            status = path.stat()
        except OSError:
            continue  # it cannot be read, and counts for nothing
        first = files.setdefault((status.st_dev, status.st_ino), path)
        if first is not path:
            raise InvalidParameter(
                f"The images {first} and {path} are one file under two names, so that one example would "
                "count twice. Take one of the names away."
            )


def _list(folder: Path) -> tuple[Listed, tuple[str, ...]]:
    """The files of a folder with the places of their classes, and the classes."""
    classes = [each for each in _classes(folder) if _images(each)]
    if len(classes) < 2:
        raise InvalidParameter(
            f"The folder {folder} must hold at least two folders with images ({', '.join(ENDINGS)}), one for "
            f"each class. It holds {len(classes)}."
        )
    listed = [(path, place) for place, each in enumerate(classes) for path in _images(each)]
    return listed, class_names(folder, [each.name for each in classes])


def class_names(folder: Path, classes: Sequence[str]) -> tuple[str, ...]:
    """The classes by the names that a file in a folder, or beside it, gives them."""
    place = next((at / NAMES for at in (folder, folder.parent) if (at / NAMES).is_file()), None)
    if place is None:
        return tuple(map(printable, classes))
    try:
        names = json.loads(content(place))
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, dict) or not all(isinstance(names.get(each), str) for each in classes):
        raise InvalidParameter(
            f"The file {place} must be JSON with a name for each folder of images, such as "
            '{"1": "pink primrose"}. Correct it, or take it away.'
        )
    return tuple(printable(names[each]) for each in classes)


def _classes(folder: Path) -> list[Path]:
    try:
        folders = [each for each in folder.iterdir() if each.is_dir() and not each.name.startswith(".")]
    except OSError as problem:
        raise InvalidParameter(f"{unreadable(folder, problem, 'folder')} Check the path.") from None
    return sorted(folders, key=lambda each: (int(each.name) if each.name.isdecimal() else -1, each.name))


def _images(folder: Path) -> list[Path]:
    """The images of a folder; names that begin with a dot are what systems put beside files."""
    try:
        paths = list(folder.iterdir())
    except OSError as problem:
        raise InvalidParameter(
            f"The folder {folder} cannot be read ({problem.strerror}). Change its rights, or move it away."
        ) from None
    return sorted(
        path
        for path in paths
        if path.suffix.lower() in ENDINGS and not path.name.startswith(".") and path.is_file()
    )
